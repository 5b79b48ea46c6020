// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_number.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

// Epsilons of norm layers of common libraries, and the machine epsilon of binary32.
constexpr std::array<double, 9> usual_epsilons = {1e-3, 1e-4, 1e-5, 1e-6, 0x1p-23, 1e-7, 1e-8, 1e-10, 1e-12};
constexpr std::array<double, 6> usual_caps = {10, 15, 20, 30, 50, 100};
constexpr std::array<double, 4> usual_thetas = {1e4, 1e5, 5e5, 1e6};

class Numbers {
 public:
  Numbers(const qkcts_contract& own, const qkcts_shape& shape) : own_(normalised(own)), shape_(shape) {}

  template <class Change>
  void add(const std::string& name, const Change& change) {
    qkcts_contract changed = own_;
    change(changed);
    changed = normalised(changed);
    if (contract_fault(changed).empty()) list_.push_back({name, changed});
  }

  // A norm and over how many numbers it runs. By section: `normalised` may move none of them.
  using Sections = std::vector<std::pair<qkcts_norm qkcts_contract::*, double>>;

  void add_epsilons(const std::string& name, const Sections& sections) {
    const auto add_each = [&](const std::string& what, const auto& epsilon) {
      add(fmt::format("{}.eps={}", name, what), [&](qkcts_contract& terms) {
        for (const auto& [section, width] : sections) (terms.*section).eps = epsilon((terms.*section).eps, width);
      });
    };
    for (const double value : usual_epsilons)
      add_each(fmt::format("{}", value), [value](double, double) { return value; });
    for (const double value : {0.0, 1.0}) add_each(fmt::format("{}", value), [value](double, double) { return value; });
    // On the sum for on the mean, and the other way round.
    add_each("its product with the width", [](double eps, double width) { return eps * width; });
    add_each("its share of the width", [](double eps, double width) { return eps / width; });
    add_each("its square", [](double eps, double) { return eps * eps; });
    add_each("its root", [](double eps, double) { return std::sqrt(eps); });
    add_each("twice that", [](double eps, double) { return 2 * eps; });
    add_each("half of it", [](double eps, double) { return eps / 2; });
    add(name + ".root=outside_root with the root of its epsilon", [&](qkcts_contract& terms) {
      for (const auto& [section, width] : sections) {
        (terms.*section).root = QKCTS_OUTSIDE_ROOT;
        (terms.*section).eps = std::sqrt((terms.*section).eps);
      }
    });
  }

  void add_norms() {
    const auto d = static_cast<double>(shape_.head_dim), dv = static_cast<double>(shape_.v_head_dim);
    const auto width = [](const qkcts_norm& norm, double lanes, std::int64_t heads) {
      return norm.axis == QKCTS_AXIS_FULL_WIDTH ? lanes * static_cast<double>(heads) : lanes;
    };
    const qkcts_norm &q = own_.q_norm, &k = own_.k_norm, &v = own_.v_norm;
    const std::pair q_section{&qkcts_contract::q_norm, width(q, d, shape_.q_heads)};
    const std::pair k_section{&qkcts_contract::k_norm, width(k, d, shape_.kv_heads)};
    const std::pair v_section{&qkcts_contract::v_norm, width(v, dv, shape_.kv_heads)};
    if (q.applied != 0 && k.applied != 0) add_epsilons("norm", {q_section, k_section});
    if (q.applied != 0) add_epsilons("q_norm", {q_section});
    if (k.applied != 0) add_epsilons("k_norm", {k_section});
    if (v.applied != 0) add_epsilons("v_norm", {v_section});
    // sqrt(n) left out, or there where it should not be: the epsilon is that of the other statistic.
    add("norm.statistic with its epsilon", [&](qkcts_contract& t) {
      const std::pair<qkcts_norm*, double> both[] = {{&t.q_norm, width(q, d, shape_.q_heads)},
                                                     {&t.k_norm, width(k, d, shape_.kv_heads)}};
      for (const auto& [norm, n] : both) {
        const bool is_mean = norm->statistic == QKCTS_MEAN_SQUARE;
        norm->statistic = is_mean ? QKCTS_SUM_SQUARE : QKCTS_MEAN_SQUARE;
        const bool in_squares = norm->root == QKCTS_INSIDE_ROOT || norm->root == QKCTS_MAX_INSIDE;
        const double factor = in_squares ? n : std::sqrt(n);
        norm->eps = is_mean ? norm->eps * factor : norm->eps / factor;
      }
    });
    if (q.applied != 0 && k.applied != 0) {
      add("k_norm as q_norm", [](qkcts_contract& t) { t.k_norm = t.q_norm; });
      add("q_norm as k_norm", [](qkcts_contract& t) { t.q_norm = t.k_norm; });
    }
    // 1/(sqrt(mean) + eps) for sqrt(sum) and the like: kind and placement at once.
    for (const std::uint32_t root : {QKCTS_INSIDE_ROOT, QKCTS_OUTSIDE_ROOT, QKCTS_MAX_ROOT, QKCTS_MAX_INSIDE})
      for (const std::uint32_t statistic : {QKCTS_MEAN_SQUARE, QKCTS_SUM_SQUARE})
        add(fmt::format("norm.root={} norm.statistic={}", root_text(root), statistic_text(statistic)),
            [&](qkcts_contract& t) {
              for (qkcts_norm* norm : {&t.q_norm, &t.k_norm}) {
                norm->root = root;
                norm->statistic = statistic;
              }
            });
  }

  // What multiplies the scores, where it is a number of the contract.
  double scale() const {
    const auto d = static_cast<double>(shape_.head_dim);
    switch (own_.score.scale_form) {
      case QKCTS_SCALE_INV_SQRT_HEAD_DIM:
        return 1 / std::sqrt(d);
      case QKCTS_SCALE_CONSTANT:
        return own_.score.scale_value;
      case QKCTS_SCALE_INV_SQRT_SCALAR:
        return 1 / std::sqrt(own_.score.scale_value);
      default:
        return 0;
    }
  }

  void add_scale(const std::string& what, double value) {
    add(fmt::format("score.scale={}", what), [&](qkcts_contract& t) {
      t.score.scale_form = QKCTS_SCALE_CONSTANT;
      t.score.scale_value = value;
    });
  }

  void add_scales() {
    const auto d = static_cast<double>(shape_.head_dim), dv = static_cast<double>(shape_.v_head_dim);
    const auto heads = static_cast<double>(shape_.q_heads), group = heads / static_cast<double>(shape_.kv_heads);
    add_scale("1", 1);
    add_scale("1/D", 1 / d);
    add_scale("1/sqrt(Dv)", 1 / std::sqrt(dv));
    add_scale("1/sqrt(Hq D)", 1 / std::sqrt(heads * d));
    add_scale("1/sqrt(D G)", 1 / std::sqrt(d * group));
    add_scale("1/sqrt(2 D)", 1 / std::sqrt(2 * d));
    add_scale("1/sqrt(D/2)", 1 / std::sqrt(d / 2));
    add_scale("D^(-1/4)", 1 / std::sqrt(std::sqrt(d)));
    const double own = scale();
    if (own > 0) {
      add_scale("its square", own * own);
      add_scale("its reciprocal", 1 / own);
      add_scale("its root", std::sqrt(own));
      // Exponentials to base two, whose scale has the factor twice, or where none is due.
      add_scale("its product with log2(e)", own * std::numbers::log2e);
      add_scale("its product with ln(2)", own * std::numbers::ln2);
    }
    const double t = own_.score.temperature;
    // A further factor beside a scale that is an input.
    for (const auto& [what, value] : {std::pair<const char*, double>{"sqrt(D)", std::sqrt(d)},
                                      {"1", 1},
                                      {"its reciprocal", 1 / t},
                                      {"its square", t * t}})
      add(fmt::format("score.temperature={}", what),
          [number = value](qkcts_contract& terms) { terms.score.temperature = number; });
    add_scaled_cap("cap before the scale", own);
    add_scaled_cap("cap after a second scale", own > 0 ? 1 / own : 0);
    // scale c tanh(<q,k>/c) is a cap of scale c, and c tanh(s/c)/T one of c/T at the same slope.
    add_scaled_cap("cap before the temperature", 1 / t);
    for (const double cap : usual_caps)
      add(fmt::format("score.softcap={}", cap), [&](qkcts_contract& terms) { terms.score.softcap = cap; });
  }

  void add_scaled_cap(const std::string& what, double factor) {
    if (own_.score.softcap == 0 || factor <= 0) return;
    add("score.softcap: " + what, [&](qkcts_contract& terms) { terms.score.softcap *= factor; });
  }

  void add_masks() {
    const qkcts_mask& mask = own_.mask;
    std::int64_t offset = mask.offset;
    if (mask.alignment == QKCTS_TOP_LEFT) offset = 0;
    if (mask.alignment == QKCTS_BOTTOM_RIGHT) offset = shape_.k_len - shape_.q_len;
    if (mask.alignment != QKCTS_BOTTOM_RIGHT_VALID)
      for (const int step : {-1, 1})
        add(fmt::format("mask.offset{:+}", step), [&](qkcts_contract& t) {
          t.mask.alignment = QKCTS_OFFSET;
          t.mask.offset = offset + step;
        });
    if (mask.causal != 0 && mask.has_window == 0) {
      add("mask.causal: one key further", [](qkcts_contract& t) {
        t.mask.causal = 0;
        t.mask.has_window = 1;
        t.mask.window_left = -1;
        t.mask.window_right = 1;
      });
    }
    if (mask.has_window != 0)
      for (const auto& [name, left, right] :
           {std::tuple<const char*, std::int64_t, std::int64_t>{"left open", -1, mask.window_right},
            {"right open", mask.window_left, -1},
            {"half to each side", mask.window_left / 2, mask.window_left / 2},
            {"the left side on both", mask.window_left, mask.window_left}})
        add(fmt::format("mask.window: {}", name), [&, left = left, right = right](qkcts_contract& t) {
          t.mask.window_left = left;
          t.mask.window_right = right;
        });
    add("mask: none", [](qkcts_contract& t) {
      t.mask = qkcts_mask{};
      t.regions = qkcts_regions{};
    });
    if (own_.regions.chunk > 0)
      add("mask.chunk: as a window", [](qkcts_contract& t) {
        t.mask.has_window = 1;
        t.mask.window_left = t.regions.chunk - 1;
        t.mask.window_right = -1;
        t.regions.chunk = 0;
      });
  }

  void add_rotations() {
    for (const double theta : usual_thetas)
      add(fmt::format("rope.theta={}", theta), [&](qkcts_contract& t) { t.rope.theta = theta; });
    const double factor = own_.rotation.factor;
    if (own_.rotation.scaling == QKCTS_SCALING_NONE || factor <= 0) return;
    add("rope.scaling=linear", [](qkcts_contract& t) { t.rotation.scaling = QKCTS_SCALING_LINEAR; });
    add("rope.scaling: theta times the factor", [&](qkcts_contract& t) {
      t.rotation.scaling = QKCTS_SCALING_NONE;
      t.rope.theta *= factor;
    });
  }

  void add_softmax() {
    add("softmax.base=two softmax.lse_base=two", [](qkcts_contract& t) {
      t.softmax.base = QKCTS_BASE_TWO;
      t.softmax.lse_base = QKCTS_BASE_TWO;
    });
    add("softmax.base=e softmax.lse_base=e", [](qkcts_contract& t) {
      t.softmax.base = QKCTS_BASE_E;
      t.softmax.lse_base = QKCTS_BASE_E;
    });
  }

  std::vector<Neighbour> take() { return std::move(list_); }

 private:
  static std::string_view text_of(std::string_view path, std::uint32_t value) {
    for (const ContractField& field : contract_field_table())
      if (field.path() == path) return field.texts[value];
    return {};
  }
  static std::string_view root_text(std::uint32_t value) { return text_of("q_norm.root", value); }
  static std::string_view statistic_text(std::uint32_t value) { return text_of("q_norm.statistic", value); }

  qkcts_contract own_;
  qkcts_shape shape_;
  std::vector<Neighbour> list_;
};

}  // namespace

std::vector<Neighbour> usual_numbers(const qkcts_contract& own, const qkcts_shape& shape) {
  Numbers numbers(own, shape);
  numbers.add_norms();
  numbers.add_scales();
  numbers.add_masks();
  numbers.add_rotations();
  numbers.add_softmax();
  return numbers.take();
}

}  // namespace qkcts

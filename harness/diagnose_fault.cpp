// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_fault.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "conformance/json.hpp"
#include "harness/adapter_error.hpp"
#include "harness/bundled_kernel.hpp"

namespace qkcts {
namespace {

// What the error of the wrong kernel in binary32 is taken times: another implementation of it errs elsewhere.
constexpr double other_implementations = 4;

// Rounding is no other formula; of another order, or of a race, no other run has the same values.
bool is_nameable(MutantKind kind) {
  return kind == MutantKind::math || kind == MutantKind::layout;
}

std::optional<AdapterDescription> described() {
  try {
    return BundledKernel("mutants").description();
  } catch (const AdapterError&) {
    return std::nullopt;
  }
}

const std::optional<AdapterDescription>& mutants_description() {
  static const std::optional<AdapterDescription> description = described();
  return description;
}

// Opened once; several threads may use one at a time.
const BundledKernel& kernel_of(const CatalogueMutant& fault) {
  static std::mutex opening;
  static std::map<std::string, std::unique_ptr<BundledKernel>> kernels;
  const std::lock_guard lock(opening);
  std::unique_ptr<BundledKernel>& kernel = kernels[fault.id];
  if (!kernel) kernel = std::make_unique<BundledKernel>("mutants?mutant=" + fault.id, mutants_description().value());
  return *kernel;
}

// Every number of the case in a wider format; exact where `format` holds them.
Case in_format(const Case& c, Format format) {
  Case wide = c;
  wide.inputs.format = format;
  const ElementType narrow = element_type(c.inputs.format), type = element_type(format);
  for (std::optional<Tensor>& tensor : wide.inputs.tensors) {
    if (!tensor || tensor->type != narrow || narrow == type) continue;
    Tensor numbers = Tensor::zeros(type, tensor->shape);
    for (std::size_t i = 0; i < numbers.count(); ++i) numbers.set_pattern(i, encode(format, tensor->value(i)));
    tensor = std::move(numbers);
  }
  return wide;
}

// Of the judged elements of a row, as the contract asked for has it.
struct RowScale {
  double delta = 0, size = 0;
  void add(const RowScale& other) {
    delta = std::max(delta, other.delta);
    size = std::max(size, other.size);
  }
};

RowScale scale_of_row(const GoldenStage& own, std::size_t profile, std::size_t first, std::size_t length) {
  RowScale scale;
  for (std::size_t i = first; i < first + length; ++i) {
    const auto delta = static_cast<double>(own.budgets[profile].delta[i]);
    if (!std::isfinite(own.values.hi[i]) || !std::isfinite(delta)) continue;
    scale.add({delta, std::fabs(own.values.hi[i])});
  }
  return scale;
}

class FaultStage {
 public:
  FaultStage(qkcts_stage stage, const Observation& observation, const std::vector<double>& values,
             const std::vector<double>* coarse)
      : format_(stage_format(stage, observation.golden().input.inputs.format)),
        own_(observation.golden().stages[stage]),
        profile_(observation.profile()),
        length_(static_cast<std::size_t>(row_length(stage, observation.golden().input.shape))),
        is_masked_(stage == QKCTS_STAGE_MASKED),
        values_(values),
        coarse_(coarse) {
    for (std::size_t r = 0; r < own_.values.rows.size(); ++r)
      stage_scale_.add(scale_of_row(own_, profile_, r * length_, length_));
    made_.present = true;
    made_.budgets.emplace_back();
  }

  void add(std::uint32_t row) {
    const auto found = std::lower_bound(own_.values.rows.begin(), own_.values.rows.end(), row);
    if (found == own_.values.rows.end() || *found != row) return;
    made_.values.rows.push_back(row);
    const std::size_t own = static_cast<std::size_t>(found - own_.values.rows.begin()) * length_;
    const double delta = delta_of(row, own);
    for (std::size_t column = 0; column < length_; ++column)
      add_element(value_at(row * length_ + column), own + column, delta);
  }

  GoldenStage take() { return std::move(made_); }

 private:
  // Beyond what binary32 or the format hold, it is binary32 that the wrong kernel is known by.
  double value_at(std::size_t i) const {
    const bool overflows =
        coarse_ != nullptr && (!std::isfinite((*coarse_)[i]) || std::fabs(values_[i]) > parameters(format_).largest);
    return overflows ? (*coarse_)[i] : values_[i];
  }

  // What the right kernel may be off by, in proportion to the numbers; and what rounding does to the wrong one.
  double delta_of(std::uint32_t row, std::size_t own) const {
    RowScale scale = scale_of_row(own_, profile_, own, length_);
    if (scale.delta == 0 || scale.size == 0) scale = stage_scale_;
    double size = 0, off = 0;
    for (std::size_t i = row * length_; i < (row + 1) * length_; ++i) {
      const double value = value_at(i);
      if (!std::isfinite(value)) continue;
      size = std::max(size, std::fabs(value));
      if (coarse_ != nullptr && std::isfinite((*coarse_)[i])) off = std::max(off, std::fabs((*coarse_)[i] - value));
    }
    const double stretch = scale.size > 0 ? std::max(1.0, size / scale.size) : 1;
    return scale.delta * stretch + other_implementations * off;
  }

  // What the contract that was asked for leaves open stays so.
  void add_element(double value, std::size_t own, double delta) {
    const ElementRule own_rule = own_.values.rule[own];
    const Trust own_trust = own_.budgets[profile_].trust[own];
    ElementRule rule = std::isfinite(value) ? ElementRule::budget : ElementRule::special;
    if (own_rule == ElementRule::free) rule = ElementRule::free;
    if (own_rule == ElementRule::hidden && (!is_masked_ || std::isinf(value))) rule = ElementRule::hidden;
    made_.values.expected.push_back(encode(format_, value));
    made_.values.hi.push_back(value);
    made_.values.lo.push_back(0);
    made_.values.rule.push_back(rule);
    made_.budgets[0].delta.push_back(static_cast<float>(delta + std::fabs(value) * unit_roundoff(format_)));
    // What is judged by its class alone has no budget that could be a domain.
    const bool is_open = own_trust == Trust::domain && !is_by_class(own_rule);
    made_.budgets[0].trust.push_back(is_open ? Trust::domain : Trust::judged);
  }

  const Format format_;
  const GoldenStage& own_;
  const std::size_t profile_, length_;
  const bool is_masked_;
  const std::vector<double>& values_;
  const std::vector<double>* coarse_;
  RowScale stage_scale_;
  GoldenStage made_;
};

}  // namespace

const std::vector<const CatalogueMutant*>& nameable_faults() {
  static const std::vector<const CatalogueMutant*> faults = [] {
    std::vector<const CatalogueMutant*> list;
    if (!mutants_description()) return list;
    const Json described = parse_json(mutants_description()->text, "mutants");
    const Json& known = described.at("arithmetic").at("mutants");
    for (const CatalogueMutant& mutant : mutant_catalogue())
      if (!mutant.fault.empty() && is_nameable(mutant.kind) && known.contains(mutant.fault) &&
          known.at(mutant.fault).at("verdict") == "fail")
        list.push_back(&mutant);
    return list;
  }();
  return faults;
}

std::optional<std::array<GoldenStage, QKCTS_STAGE_COUNT>> fault_stages(const CatalogueMutant& fault, const Case& other,
                                                                       const Observation& observation,
                                                                       const StageRows& rows) {
  const BundledKernel& kernel = kernel_of(fault);
  const std::optional<StageBytes> fine = kernel.outputs(in_format(other, Format::binary64));
  if (!fine) return std::nullopt;
  std::optional<StageBytes> coarse;
  if (other.inputs.format != Format::binary64) coarse = kernel.outputs(in_format(other, Format::binary32));
  std::array<GoldenStage, QKCTS_STAGE_COUNT> made;
  for (const qkcts_stage stage : all_stages) {
    if (rows[stage].empty() || (*fine)[stage].empty() || !observation.golden().stages[stage].present) continue;
    const std::vector<double> values = stage_values(*fine, stage, Format::binary64);
    std::vector<double> rounded;
    if (coarse && !(*coarse)[stage].empty()) rounded = stage_values(*coarse, stage, Format::binary32);
    FaultStage one(stage, observation, values, rounded.empty() ? nullptr : &rounded);
    for (const std::uint32_t row : rows[stage]) one.add(row);
    made[stage] = one.take();
  }
  return made;
}

}  // namespace qkcts

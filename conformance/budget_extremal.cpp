// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_extremal.hpp"

#include <algorithm>
#include <limits>

namespace qkcts {
namespace {

// Let y_j = v_j - o, so that sum p y = 0, and w_j lie in [e^-t_j, e^t_j]. s is an upper bound of the moved mean
// sum p w y / sum p w iff sum p w (y - s) <= 0 for all w; the largest w_j where y_j > s and the least elsewhere make
// that sum largest. With e = e^t - 1, f = 1 - e^-t and sum p (y - s) = -s it is G(s) - s,
//
//     G(s) = sum p (e (y - s)^+ + f (s - y)^+).
//
// So any s with G(s) <= s is a bound, and s = G(s) is the supremum. G holds sums of non-negative terms only: p and |y|
// enter as magnitudes, and nothing cancels however small t is. g(s) = G(s) - s is convex and falls with slope -W(s), W
// the sum of those weights (>= sum p e^-t > 0): Newton's method from s = 0, where g >= 0, stays below the supremum and
// takes the finitely many sets {y > s} in order. What it ends at is moved up a little and must pass the test itself.
constexpr int most_steps = 12;
constexpr double close_enough = 0x1p-16;  // of s, where a step is no longer worth its time
constexpr double moved_up = 1 + 0x1p-12;

// Below this e^t - 1, f and t differ by so little that nothing is gained: to first order (1 + 2t) of the bound. In
// plain arithmetic only rows of ill-conditioned norms lie above it; they keep the first-order bound, and corpora their
// bits.
constexpr double least_exponent = 0x1p-5;

class Direction {
 public:
  Direction(const RowWeights& w, const ValueRows& values, std::span<const double> exact, std::span<const double> blur,
            double sign)
      : w_(w), values_(values), exact_(exact), sign_(sign), gain_(values.length), weight_(values.length) {
    double moved = 0;
    for (std::size_t j = 0; j < w.moved.size(); ++j) {
      moved += w.moved[j];
    }
    // y is known to within `blur`: every term may be larger by its weight times that.
    for (const double b : blur) {
      unsure_.push_back(sum_upper(moved, w.n) * b);
    }
  }

  std::vector<double> bound() {
    std::vector<double> s(values_.length, 0.0);
    for (int step = 0; step < most_steps; ++step) {
      evaluate(s);
      bool moved = false;
      for (std::size_t d = 0; d < s.size(); ++d) {
        const double rest = gain_[d] - s[d];
        if (rest > 0) {
          s[d] += rest / weight_[d];
          moved = moved || rest > close_enough * weight_[d] * s[d];
        }
      }
      if (!moved) {
        break;
      }
    }
    for (double& x : s) {
      x *= moved_up;
    }
    evaluate(s);
    for (std::size_t d = 0; d < s.size(); ++d) {
      if (!(gain_[d] <= s[d])) {
        s[d] = std::numeric_limits<double>::infinity();
      }
    }
    return s;
  }

 private:
  // G(s) from above and W(s), per element.
  void evaluate(const std::vector<double>& s) {
    std::fill(gain_.begin(), gain_.end(), 0.0);
    std::fill(weight_.begin(), weight_.end(), 0.0);
    const std::size_t length = values_.length;
    double* __restrict gain = gain_.data();
    double* __restrict weight = weight_.data();
    const double* __restrict level = s.data();
    for (std::size_t j = 0; j < values_.v.size(); ++j) {
      const double* v = values_.v[j];
      const double raised = w_.moved[j];  // p e
      const double grown = w_.grown[j];   // p e^t
      const double p = w_.probability[j];
      const double lowered = raised * (p / grown);  // p f
      const double shrunk = p * (p / grown);        // p e^-t
      for (std::size_t d = 0; d < length; ++d) {
        const double above = sign_ * (v[d] - exact_[d]) - level[d];
        gain[d] += above > 0 ? raised * above : lowered * -above;
        weight[d] += above > 0 ? grown : shrunk;
      }
    }
    for (std::size_t d = 0; d < length; ++d) {
      gain_[d] = sum_upper(gain_[d] + unsure_[d], w_.n);
    }
  }

  const RowWeights& w_;
  const ValueRows& values_;
  std::span<const double> exact_;
  double sign_;
  std::vector<double> gain_, weight_, unsure_;
};

}  // namespace

bool extremal_form_pays(const RowWeights& weights) {
  return weights.coarse && !weights.unbounded && weights.exponent >= least_exponent;
}

std::vector<double> extremal_moves(const RowWeights& w, const ValueRows& values, std::span<const double> exact,
                                   std::span<const double> blur) {
  std::vector<double> moves = Direction(w, values, exact, blur, 1).bound();
  const std::vector<double> falls = Direction(w, values, exact, blur, -1).bound();
  for (std::size_t d = 0; d < moves.size(); ++d) {
    moves[d] = std::max(moves[d], falls[d]);
  }
  return moves;
}

}  // namespace qkcts

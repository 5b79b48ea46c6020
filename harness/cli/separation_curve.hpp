// SPDX-License-Identifier: Apache-2.0
// Where an epsilon becomes visible: of every row of q_norm how surely it tells the contract from one with another
// epsilon, or with the epsilon at another place, beside the size of the row that goes in.
#pragma once

#include <string>
#include <vector>

#include "vectors/corpus_reader.hpp"

namespace qkcts::cli {

struct CurvePoint {
  double rms = 0;    // of the row of q
  double ratio = 0;  // sqrt(t / eps), t the statistic beside which eps stands: mean square, variance, sum of squares
  double separation = 0;  // above 1: no implementation that is right for the neighbour can pass
};

struct SeparationCurve {
  std::string slug, contract, kind, format, profile, neighbour;
  double eps = 0;
  std::vector<CurvePoint> points;  // by rising ratio
};

// Of the cases whose contract and family match the globs, and whose q is an input with a norm over each head and an
// epsilon above 0; for the neighbours that differ in the epsilon of q or in its place, and every profile.
std::vector<SeparationCurve> separation_curves(const CorpusReader& reader, const std::string& contracts,
                                               const std::string& families);

}  // namespace qkcts::cli

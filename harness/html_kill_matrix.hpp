// SPDX-License-Identifier: Apache-2.0
// The kill matrix of `qkcts adequacy --format json` on a page: how surely the cases tell wrong contracts from right
// ones.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkcts {

struct KillMatrixCell {
  std::string profile, verdict, where, why;
  double separation = 0;  // infinite where classes of values differ
};

struct KillMatrixRow {
  std::string id, clause, right, wrong;
  std::vector<KillMatrixCell> cells;
};

struct KillMatrix {
  std::vector<std::string> corpora;   // "core: 200 cases, digest ..."
  std::vector<std::string> profiles;  // columns, as they come
  std::vector<std::string> digests;
  std::vector<KillMatrixRow> rows;
  std::string effort;
};

// Throws InputError if the text is not what `qkcts adequacy` writes.
KillMatrix kill_matrix_from_json(std::string_view text, std::string_view origin);

// A section; says so where the matrix is that of other corpora than the run.
std::string kill_matrix_html(const KillMatrix& matrix, const std::string& run_digest);

}  // namespace qkcts

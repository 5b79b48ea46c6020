// SPDX-License-Identifier: Apache-2.0
// How surely cases tell their contracts from neighbouring ones, for `inspect --separation`.
#pragma once

#include <cstdint>
#include <string>

#include "reference/separation.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts::cli {

enum class TableForm : std::uint8_t { text, csv, json };

// An empty glob matches everything.
bool glob_matches(const std::string& glob, const std::string& name);
CaseView view_of(const GoldenCase& golden);

// The stored separations of a case; of a file that stores none, computed over all stored rows.
SeparationRecord separations_of(const GoldenCase& golden);

// One line per neighbouring contract: by which stage, and how surely, the case tells the two apart under each profile.
void print_separations(const GoldenCase& golden);

// All cases of a corpus that match. text: per neighbour and format, the best case; csv, json: every entry of every
// table, beside the epsilon of q and the smallest rms of a row of q.
void print_separations(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                       TableForm form);

// By row of q_norm: separation_curve.hpp. text: up to which size of a row each neighbour can be told apart.
void print_separation_rows(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                           TableForm form);

// The same, drawn. Throws WriteError.
void draw_separation_rows(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                          const std::string& path);

}  // namespace qkcts::cli

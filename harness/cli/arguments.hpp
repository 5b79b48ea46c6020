// SPDX-License-Identifier: Apache-2.0
// Arguments that several commands take.
#pragma once

#include <string>
#include <vector>

#include "conformance/contract.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts::cli {

// "probs,output" as a set. Throws UsageError naming the stages that there are.
StageSet stages_from_text(const std::string& text);
qkcts_stage stage_from_text(const std::string& text);

// A contract by shipped name, or from a JSON file if there is a file of that name or the name ends in .json.
Contract contract_from_argument(const std::string& argument);

// The case of that name, or the only one whose name contains the text. Throws InputError.
std::string chosen_case(const CorpusReader& reader, const std::string& wanted);

// Throws UsageError where an adapter stands in the place of a corpus: the two are swapped, or the corpus was forgotten.
// `adapter`: what stands in the place of the adapter.
void require_corpus_argument(const std::string& corpus, const std::string& adapter);

// Why a glob over names of cases selects none of those of the corpus, and what to do; without an end.
std::string no_case_text(const std::string& corpus, const std::string& glob);
// The same of names from elsewhere; empty if the glob selects some.
std::string no_case_text(const std::vector<std::string>& slugs, const std::string& glob);

// The words with which this program was started.
std::vector<std::string> command_line();

}  // namespace qkcts::cli

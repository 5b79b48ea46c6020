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

// The words with which this program was started.
std::vector<std::string> command_line();

}  // namespace qkcts::cli

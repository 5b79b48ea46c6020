// SPDX-License-Identifier: Apache-2.0
// A file of results in place of an adapter: what it holds is handed to the judge case by case.
#pragma once

#include <memory>

#include "harness/adapter_runner.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {

// Throws InputError unless the results answer requests that were made of this corpus, and nothing else.
void require_results_of(const AdapterSpec& results, const CorpusReader& corpus);

// open() and run() throw InputError for a file that is no result file; a case that it does not hold is not_run.
std::unique_ptr<AdapterRunner> results_runner(const AdapterSpec& results);

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// The cases of a run, one after another: read from the corpus, run, judged, and beside that the plain evaluation.
#pragma once

#include <memory>
#include <string>

#include "harness/plain_evaluation.hpp"
#include "harness/run_request.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {

enum class Outputs : std::uint8_t { dropped, kept };

struct RanCase {
  CaseResult result;
  std::string contract;      // canonical JSON
  KeptOutputs outputs;       // if they were to be kept, and the calls ended well
  bool worker_died = false;  // of this case
};

class CaseRunner {
 public:
  // All but `adapter` outlive the object; `plain` may be null.
  CaseRunner(const RunRequest& request, const CorpusReader& corpus, const AdapterDescription& description,
             std::unique_ptr<AdapterRunner> adapter, const PlainEvaluation* plain);

  RanCase run(const std::string& slug, Outputs outputs);

 private:
  const RunRequest& request_;
  const CorpusReader& corpus_;
  const AdapterDescription& description_;
  std::unique_ptr<AdapterRunner> adapter_;
  const PlainEvaluation* plain_;
};

}  // namespace qkcts

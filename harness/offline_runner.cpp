// SPDX-License-Identifier: Apache-2.0
#include "harness/offline_runner.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace qkcts {
namespace {

// The contract of the order, without its slug: nothing but bits is compared.
Case case_of(const RunOrder& order) {
  return {order.slug, contract_from_json(order.request.contract_json, "the case's contract"), order.request.shape,
          order.request.inputs};
}

class ResultsRunner final : public AdapterRunner {
 public:
  explicit ResultsRunner(const AdapterSpec& spec) : results_(spec.path, spec.strictness) {}

  OpenAnswer open(bool) override {
    OpenAnswer answer;
    answer.description = results_.description();
    return answer;
  }

  RunOutcome run(const RunOrder& order) override {
    RunOutcome outcome;
    const std::vector<std::string>& slugs = results_.slugs();
    if (!std::binary_search(slugs.begin(), slugs.end(), order.slug)) {
      outcome.death = Verdict::not_run;
      outcome.death_detail = "the results hold no answer to this case";
      return outcome;
    }
    outcome.answer.executions.push_back(results_.read(order.slug, case_of(order), order.request.stages));
    outcome.answer.same_as_first.push_back(false);
    return outcome;
  }

 private:
  ResultReader results_;
};

// Everything that will be read, read once where a crash does no harm.
void look_at_results(const AdapterSpec& spec, const std::string& path) {
  look_in_child(spec.path, [&] {
    const ResultReader results(spec.path, spec.strictness);
    const CorpusReader corpus(path);  // not the one that is open here: a file position would be shared
    for (const std::string& slug : results.slugs()) {
      if (!std::binary_search(corpus.slugs().begin(), corpus.slugs().end(), slug)) continue;
      const Case asked = corpus.read(slug).input;
      static_cast<void>(results.read(slug, asked, stages_of(asked.contract.terms)));
    }
  });
}

}  // namespace

void require_results_of(const AdapterSpec& results, const CorpusReader& corpus) {
  look_at_results(results, corpus.info().path);
  const ResultReader reader(results.path, results.strictness);
  if (reader.corpus_digest() != corpus.info().digest)
    throw InputError(fmt::format("{}: answers requests of another corpus (digest {}), not of {} (digest {})",
                                 results.path, reader.corpus_digest().substr(0, 12), corpus.info().path,
                                 corpus.info().digest.substr(0, 12)));
  for (const std::string& slug : reader.slugs())
    if (!std::binary_search(corpus.slugs().begin(), corpus.slugs().end(), slug))
      throw InputError(fmt::format("{}: /cases/{}: no such case was asked; {} has none of this name", results.path,
                                   slug, corpus.info().path));
}

std::unique_ptr<AdapterRunner> results_runner(const AdapterSpec& results) {
  return std::make_unique<ResultsRunner>(results);
}

}  // namespace qkcts

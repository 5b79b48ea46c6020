// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_corpus.hpp"

#include <memory>
#include <set>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/file_replacement.hpp"
#include "vectors/generate_parts.hpp"
#include "vectors/generate_workers.hpp"

namespace qkcts {
namespace {

std::unique_ptr<CaseParts> parts_of(const std::string& path, const GenerateOptions& options) {
  if (!options.resume) return nullptr;
  return std::make_unique<CaseParts>(path + ".part", PartsOrigin{options.program, options.plan_digest, options.shard});
}

// A relation of a case that was refused is lost with it.
void add_relations(const std::vector<Relation>& relations, const std::set<std::string>& written, CorpusWriter& writer,
                   GenerateReport& report) {
  for (const Relation& relation : relations) {
    if (written.count(relation.cases.front()) == 0) {
      report.silent_relations.push_back(fmt::format("{}: {} was refused", relation.slug, relation.cases.front()));
      continue;
    }
    writer.add(relation);
    ++report.relations;
  }
}

}  // namespace

GenerateReport generate_corpus(const Plan& plan, const std::string& path, const GenerateOptions& options) {
  GenerateReport report;
  GenerateProgress progress;
  progress.all = plan.cases.size();
  for (const PlannedCase& planned : plan.cases) progress.work_all += estimated_seconds(planned);
  CorpusHeader header{plan.suite, options.generator_version, plan.seed};
  if (!options.shard.empty()) {
    header.shard = options.shard;
    header.plan_digest = options.plan_digest;
  }
  static_cast<void>(FileReplacement(path));  // what is wrong with the name is said before a folder stands beside it
  const std::unique_ptr<CaseParts> parts = parts_of(path, options);
  auto writer = std::make_unique<CorpusWriter>(path, header, parts ? parts->place_of_the_whole() : std::string());
  GenerateWorkers workers(plan, options.jobs, options.tier, parts.get());
  std::set<std::string> written;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    std::optional<CaseOutcome> outcome = workers.take(i, options.stopped);
    if (!outcome) {
      writer.reset();  // before the cases in work are waited for: a second signal ends that
      throw Interrupted(fmt::format("{}: interrupted after {} of {} cases", path, i, plan.cases.size()));
    }
    if (outcome->error) std::rethrow_exception(outcome->error);
    if (!plan.cases[i].fitting)
      report.dropped.insert(report.dropped.end(), outcome->dropped.begin(), outcome->dropped.end());
    report.silent_relations.insert(report.silent_relations.end(), outcome->says_nothing.begin(),
                                   outcome->says_nothing.end());
    if (outcome->resumed) ++report.resumed;
    if (outcome->golden) {
      writer->add(*outcome->golden);
      written.insert(plan.cases[i].slug);
      add_relations(outcome->relations, written, *writer, report);
      ++report.written;
    } else if (plan.cases[i].fitting && outcome->refusal == unjudged) {
      ++report.unjudged;
    } else if (!outcome->refusal.empty()) {
      report.refused.push_back({plan.cases[i].slug, outcome->refusal});
    }
    progress.done = i + 1;
    progress.work_done += estimated_seconds(plan.cases[i]);
    progress.slug = plan.cases[i].slug;
    if (options.progress) options.progress(progress);
  }
  report.digest = writer->finish();
  if (parts && !options.keep_parts) remove_parts(path + ".part");
  return report;
}

}  // namespace qkcts

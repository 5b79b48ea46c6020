// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/fresh_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "harness/certificate.hpp"
#include "harness/interruption.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/progress_line.hpp"

namespace qkcts::cli {
namespace {

GenerateReport generate(const Plan& plan, const std::string& path) {
  ProgressLine line("generated", stderr);
  GenerateOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  options.generator_version = fmt::format("qkcts {}", QKCTS_VERSION);
  options.stopped = [] { return interruption() != 0; };
  options.progress = [&line](const GenerateProgress& p) {
    line.update(p.done, p.all, p.work_all > 0 ? p.work_done / p.work_all : 1, p.slug);
  };
  return generate_corpus(plan, path, options);
}

}  // namespace

bool can_generate() {
  return true;
}

void generate_suite(const ReleasedSuite& suite, const std::string& path) {
  const GenerateReport report = generate(load_plan(suite.name), path);
  if (report.digest != suite.digest)
    throw InputError(fmt::format("{}: generated with digest {}, but the manifest has {}: this build computes otherwise",
                                 path, report.digest.substr(0, 12), suite.digest.substr(0, 12)));
}

std::vector<std::string> generate_fresh(const std::vector<std::string>& suites, const std::vector<std::string>& slugs,
                                        std::uint64_t seed, const std::string& path) {
  const std::set<std::string> wanted(slugs.begin(), slugs.end());
  Plan fresh;
  fresh.suite = fresh_suite;
  fresh.seed = seed;
  for (const std::string& suite : suites) {
    const Plan plan = load_plan(suite, {true, seed, false});
    for (const PlannedCase& planned : plan.cases) {
      if (!wanted.contains(planned.slug)) continue;
      PlannedCase& again = fresh.cases.emplace_back(planned);
      again.slug = fmt::format("{}/{}", fresh_suite, planned.slug);
      again.relations.clear();
    }
  }
  const GenerateReport report = generate(fresh, path);
  std::vector<std::string> left_out;
  for (const RefusedCase& refused : report.refused) left_out.push_back(refused.slug + ": " + refused.reason);
  for (const DroppedProfile& dropped : report.dropped)
    left_out.push_back(fmt::format("{}: not judged by profile {}: {:.1f} % of stage {} is mistrusted", dropped.slug,
                                   dropped.profile, 100 * dropped.share, dropped.stage));
  return left_out;
}

}  // namespace qkcts::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "conformance/file.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/certificate_package.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/certificate_corpus.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/fresh_corpus.hpp"
#include "harness/cli/released_corpus.hpp"
#include "harness/private_folder.hpp"
#include "harness/report_html.hpp"
#include "harness/run_session.hpp"
#include "harness/value_text.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

constexpr std::size_t most_listed = 10;

struct VerifyArguments {
  std::string folder, adapter;
  std::vector<std::string> corpora;
};

class Findings {
 public:
  void expect(bool holds, const std::string& what) {
    if (!holds) lines_.push_back(what);
  }
  void add(std::vector<std::string> lines) { lines_.insert(lines_.end(), lines.begin(), lines.end()); }
  int report(const std::string& folder) const {
    for (std::size_t i = 0; i < std::min(lines_.size(), most_listed); ++i)
      fmt::print("{}: MISMATCH: {}\n", folder, lines_[i]);
    if (lines_.size() > most_listed) fmt::print("... and {} more\n", lines_.size() - most_listed);
    return lines_.empty() ? 0 : 1;
  }

 private:
  std::vector<std::string> lines_;
};

// The corpora that the certificate names, and the fresh one that it carries.
CertificateCorpus corpus_of(const VerifyArguments& given, const CertificateTerms& terms,
                            const AdapterDescription& description, const std::string& work, Findings& findings) {
  CertificateCorpus corpus;
  corpus.folder = work;
  std::vector<std::string> files = given.corpora, suites;
  std::vector<ReleasedSuite> releases;
  for (const CertifiedCorpus& one : terms.corpora) {
    if (one.suite == fresh_suite) continue;
    const auto released = released_suite(one.suite);
    if (!released || released->digest != one.digest)
      throw InputError(
          fmt::format("{}/{}: suite {} of digest {} is no release of qkcts {}; verify it with the version "
                      "that it names",
                      given.folder, package::certificate, one.suite, one.digest.substr(0, 12), QKCTS_VERSION));
    files.push_back(fmt::format("{}.corpora/{}.h5", given.folder, one.suite));
    releases.push_back(*released);
    suites.push_back(one.suite);
  }
  require_of_suites(given.corpora, releases);
  for (const ReleasedSuite& released : releases) place_released(corpus, released, files);
  place_file(fmt::format("{}/{}", given.folder, package::fresh), corpus.file(fresh_suite));
  check_untrusted_corpus(corpus.file(fresh_suite));
  const std::vector<std::string> chosen = chosen_for_fresh(corpus, terms, description);
  join_all(corpus, terms, description);
  for (const CertifiedCorpus& one : corpus.corpora)
    for (const CertifiedCorpus& claimed : terms.corpora)
      if (claimed.suite == one.suite)
        findings.expect(claimed.digest == one.digest && claimed.cases == one.cases,
                        fmt::format("suite {} has digest {}, the certificate says {}", one.suite,
                                    one.digest.substr(0, 12), claimed.digest.substr(0, 12)));
  findings.expect(corpus.corpora.size() == terms.corpora.size(), "the certificate names other corpora");
  if (!can_generate()) {
    fmt::print("{}: not checked: that {} follows from the seed; that needs the full build\n", given.folder,
               package::fresh);
    return corpus;
  }
  const std::vector<std::string> left_out = generate_fresh(suites, chosen, terms.seed, work + "/drawn.h5");
  findings.expect(CorpusReader(work + "/drawn.h5").info().digest == corpus.corpora.back().digest,
                  fmt::format("{} does not follow from the seed", package::fresh));
  findings.expect(left_out == terms.fresh_left_out,
                  "other cases than the certificate says are left out of the fresh part");
  return corpus;
}

// Known failures held on the day of the run, whatever the day is now.
RunRecord judge_again(const VerifyArguments& given, const CertificateTerms& terms, const CertificateCorpus& corpus,
                      const std::string& day) {
  const std::string outputs = fmt::format("{}/{}", given.folder, package::outputs);
  RunRequest request;
  request.adapter = {outputs, outputs, "", AdapterKind::results};
  request.corpus_path = corpus.joined();
  request.only = corpus.in_scope;
  if (!terms.profile.empty()) request.options.profile = terms.profile;
  request.demands.everything = true;
  if (!terms.known_failures.empty())
    request.known_failures = known_failures_from_json(terms.known_failures, std::string(package::certificate));
  request.known_failures_day = day;
  request.keep_outputs = [](const Case&, const Execution&) {};  // cases without budgets are run, as they were
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return *run_corpus(request, {[](std::size_t) {}, [](const RunRecord&, const CaseResult&) {}, {}});
}

// In a worker, with every kind of call, and without a filter of any kind.
bool made_as_certified(const RunConditions& how) {
  return !how.in_process && how.variants == Variants::all && how.case_glob == RunConditions{}.case_glob &&
         how.shard.empty() && how.gtest.empty();
}

int verify_certificate(const VerifyArguments& given) {
  const Json body = package::open(given.folder);
  const std::string path = fmt::format("{}/{}", given.folder, package::certificate);
  const CertificateTerms terms = terms_from_json(JsonAt(body, path)["terms"]);
  const RunRecord claimed = read_run_record(fmt::format("{}/{}", given.folder, package::run));
  const AdapterDescription description = description_from_json(terms.description, path + ": /terms/description");
  Findings findings;
  const PrivateFolder work;
  const CertificateCorpus corpus = corpus_of(given, terms, description, work.path(), findings);
  findings.expect(terms.joined_digest == corpus.joined_digest, "the corpora together have another digest");
  findings.expect(claimed.corpus_digest == corpus.joined_digest, "run.json judges another corpus");
  findings.expect(claimed.description.text == terms.description, "run.json holds another describe()");
  findings.expect(claimed.adapter_sha256 == terms.adapter_sha256, "run.json is that of another adapter");
  findings.expect(claimed.demands.everything, "run.json was made without the demand that all be supported");
  findings.expect(claimed.repeat == terms.repeat && claimed.profile_asked == terms.profile,
                  "run.json was made with another --repeat or --profile");
  findings.expect(made_as_certified(claimed.conditions), "run.json was made under other conditions than certify's");
  if (given.adapter.empty()) {
    fmt::print("{}: not checked: that the seed follows from adapter and nonce; --adapter checks it\n", given.folder);
  } else {
    const AdapterSpec adapter = resolve_adapter(given.adapter);
    findings.expect(adapter_digest(adapter) == terms.adapter_sha256, "this is not the adapter that was certified");
    findings.expect(fresh_seed(adapter, terms.nonce) == terms.seed, "the seed does not follow from adapter and nonce");
  }
  const RunRecord again = judge_again(given, terms, corpus, claimed.started.substr(0, 10));
  findings.expect(again.description.text == terms.description, "outputs.h5 holds another describe()");
  findings.expect(!claimed.demands.allow_not_run, "run.json was made with --allow-not-run");
  findings.expect(to_json(claimed).at("known_failures") == to_json(again).at("known_failures"),
                  "run.json lists other known failures than the terms");
  findings.expect(claimed.relations.empty() && claimed.interrupted_by == 0, "run.json holds what certify never writes");
  findings.expect(body.at("certified_at") == claimed.started, "certified_at is not the start of the run");
  findings.add(package::differences(claimed, again));
  for (const CaseResult& result : claimed.cases)
    if (!corpus.suites.contains(result.slug)) return findings.report(given.folder);
  const Json claims = certificate_claims(claimed, terms, corpus.suites);
  findings.expect(claims == body.at("claims"), "the claims do not follow from run.json");
  findings.expect(read_text_file(fmt::format("{}/{}", given.folder, package::summary)) == certificate_summary(body),
                  fmt::format("{} does not say what {} says", package::summary, package::certificate));
  findings.expect(read_text_file(fmt::format("{}/{}", given.folder, package::report)) == report_html(claimed),
                  fmt::format("{} does not show what {} says", package::report, package::run));
  const int code = findings.report(given.folder);
  if (code == 0)
    fmt::print("{}: every file is as it was sealed; {} judged again, figure for figure as claimed\n{}: {}\n",
               given.folder, counted(again.cases.size(), "case", "cases"),
               claims.at("conforms").get<bool>() ? "CONFORMING in its scope" : "NOT CONFORMING in its scope",
               claims.at("title").get<std::string>());
  return code;
}

}  // namespace

void add_verify_certificate(CLI::App& app, Command& command) {
  CLI::App* const sub =
      app.add_subcommand("verify-certificate", "Judge the outputs of a certificate again, without the hardware");
  auto given = std::make_shared<VerifyArguments>();
  sub->add_option("DIR", given->folder, "Folder that `qkcts certify` wrote")->required();
  sub->add_option("--adapter", given->adapter,
                  "The adapter that was certified, as for `qkcts run`: its digest, and the seed that follows from it")
      ->type_name("ADAPTER");
  sub->add_option("--corpus", given->corpora, "Corpora of its suites, if they are there (else they are generated)")
      ->type_name("FILE");
  sub->footer(
      "Example: qkcts verify-certificate certificate --corpus core.h5\n"
      "Exit code: 0 all is as claimed (whether it conforms, its title says), 1 something is claimed that the outputs "
      "do "
      "not show, 3 a file is missing, changed or does not belong there");
  sub->callback([given, &command] { command = [given] { return verify_certificate(*given); }; });
}

}  // namespace qkcts::cli

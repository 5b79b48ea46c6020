// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>

#include "conformance/file.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/adapter_error.hpp"
#include "harness/certificate_package.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/certificate_archive.hpp"
#include "harness/cli/certificate_corpus.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/cli/fresh_corpus.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/released_corpus.hpp"
#include "harness/cli/run.hpp"
#include "harness/exchange_results.hpp"
#include "harness/interruption.hpp"
#include "harness/report_html.hpp"
#include "harness/report_text.hpp"
#include "harness/utf8_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

namespace fs = std::filesystem;

struct CertifyArguments {
  std::string adapter, profile, nonce, known_failures, output = "certificate";
  std::vector<std::string> suites = {"core"}, corpora, contracts, formats;
  int repeat = 2;
  double timeout = 60;
};

std::string drawn_nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// A certificate may take the place of an older one, or of what an interrupted one left, and of nothing else.
void require_room(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return make_report_folder(folder);
  const auto is_ours = [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    return name == package::certificate ||
           std::find(package::sealed.begin(), package::sealed.end(), name) != package::sealed.end();
  };
  if (!fs::is_directory(folder, error) ||
      !std::all_of(fs::directory_iterator(folder), fs::directory_iterator(), is_ours))
    throw WriteError(fmt::format("{}: is there and holds something else than a certificate", folder));
  const auto inside = [&folder](std::string_view name) { return fmt::format("{}/{}", folder, name); };
  require_destinations({{inside(package::fresh), FileKind::corpus},
                        {inside(package::outputs), FileKind::results},
                        {inside(package::run), FileKind::run},
                        {inside(package::report), FileKind::page},
                        {inside(package::summary), FileKind::markdown},
                        {inside(package::certificate), FileKind::certificate}},
                       {});
}

// The older certificate goes when the new one is there, not before.
void make_room(const std::string& folder) {
  const auto remove = [&folder](std::string_view name) {
    std::error_code error;
    const std::string path = fmt::format("{}/{}", folder, name);
    fs::remove(path, error);
    if (error) throw WriteError(fmt::format("{}: cannot be removed: {}", path, error.message()));
  };
  std::for_each(package::sealed.begin(), package::sealed.end(), remove);
  remove(package::certificate);
}

// A suite with relations would run cases that only they need, outside of what was declared.
std::vector<ReleasedSuite> certified_suites(const std::vector<std::string>& names) {
  std::vector<ReleasedSuite> suites;
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1)
      throw UsageError(fmt::format("--suite: {} stands there twice", name));
    if (name != "smoke" && name != "core" && name != "edge" && name != "robust")
      throw UsageError(
          fmt::format("--suite: '{}' is none that is certified; there are: smoke, core, edge, robust", name));
    suites.push_back(suite_from_argument(name));
  }
  return suites;
}

struct Opened {
  AdapterDescription description;
  std::string unavailable;
};

Opened look_at(const RunRequest& request) {
  const OpenAnswer answer = adapter_runner(request)->open(true);
  Opened opened{description_from_adapter(answer.description, request.adapter.given), {}};
  if (answer.probe != QKCTS_OK)
    opened.unavailable = answer.probe_reason.empty() ? "probe() gave no reason" : utf8_line(answer.probe_reason);
  return opened;
}

CertificateTerms terms_of(const CertifyArguments& given, const AdapterSpec& adapter,
                          const AdapterDescription& description) {
  CertificateTerms terms;
  terms.contracts = given.contracts;
  terms.formats = given.formats;
  terms.profile = given.profile;
  terms.description = description.text;
  terms.adapter = given.adapter;
  terms.adapter_sha256 = adapter_digest(adapter);
  terms.nonce_given = !given.nonce.empty();
  terms.nonce = terms.nonce_given ? given.nonce : drawn_nonce();
  terms.seed = fresh_seed(adapter, terms.nonce);
  terms.repeat = given.repeat;
  if (!given.known_failures.empty())
    terms.known_failures = canonical_text(parse_json(read_text_file(given.known_failures), given.known_failures));
  terms.machine = certified_machine_json();
  terms.suite = certifying_suite_json(QKCTS_VERSION);
  return terms;
}

CertificateCorpus make_corpus(const CertifyArguments& given, const std::vector<ReleasedSuite>& suites,
                              CertificateTerms& terms, const AdapterDescription& description) {
  CertificateCorpus corpus;
  corpus.folder = given.output + ".corpora";
  make_report_folder(corpus.folder);
  require_of_suites(given.corpora, suites);
  for (const ReleasedSuite& suite : suites) place_released(corpus, suite, given.corpora);
  const std::vector<std::string> chosen = chosen_for_fresh(corpus, terms, description);
  if (chosen.empty()) return corpus;
  terms.fresh_left_out = generate_fresh(given.suites, chosen, terms.seed, corpus.file(fresh_suite));
  join_all(corpus, terms, description);
  terms.corpora = corpus.corpora;
  terms.joined_digest = corpus.joined_digest;
  return corpus;
}

RunRequest request_of(const CertifyArguments& given) {
  RunRequest request;
  request.adapter = resolve_adapter(given.adapter);
  if (!given.profile.empty()) request.options.profile = given.profile;
  request.options.repeat = given.repeat;
  request.options.variants = Variants::all;
  if (!given.known_failures.empty())
    request.known_failures = known_failures_from_json(read_text_file(given.known_failures), given.known_failures);
  request.demands.everything = true;  // unsupported inside of what was declared fails
  request.limits.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(given.timeout * 1000));
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return request;
}

RunRecord run_and_keep(RunRequest request, const CertificateCorpus& corpus, const CertificateTerms& terms,
                       const std::string& outputs) {
  request.corpus_path = corpus.joined();
  request.corpus_digest = corpus.joined_digest;
  request.only = corpus.in_scope;
  ResultWriter writer(outputs, outputs, corpus.joined_digest, terms.description);
  request.keep_outputs = [&](const Case& asked, const Execution& execution) { writer.add(asked, execution); };
  RunDisplay display;
  RunRecord record =
      *run_corpus(request, {[&](std::size_t cases) { display.start(cases); },
                            [&](const RunRecord& now, const CaseResult& result) { display.after_case(now, result); },
                            {}});
  display.clear();
  writer.close();
  if (record.interrupted_by == 0 && record.cases.size() != corpus.in_scope.size())
    throw AdapterError(fmt::format("{}: {} of {} cases in scope were run; nothing is certified", request.adapter.given,
                                   record.cases.size(), corpus.in_scope.size()));
  if (record.description.text != terms.description)
    throw AdapterError(fmt::format("{}: describe() says otherwise than it did before the run", request.adapter.given));
  return record;
}

void print_claims(const std::string& folder, const Json& claims, const Json& body) {
  fmt::print("{}", wrapped("", claims.at("title").get<std::string>(), 2));
  for (const Json& level : claims.at("levels"))
    fmt::print("{}", wrapped(fmt::format("  {:<10} {:<11} ", level.at("level").get<std::string>(),
                                         level.at("reached").get<bool>() ? "reached" : "not reached"),
                             level.at("detail").get<std::string>()));
  for (const Json& one : claims.at("suspicious"))
    fmt::print("{}", wrapped("  SUSPICIOUS: ", one.get<std::string>(), 4));
  const std::string archive = archive_certificate(folder);
  fmt::print("{}\n", archive.empty() ? "No archive: tar --zstd does not work here; the folder is the certificate."
                                     : "Archive: " + archive);
  const std::string summary = certificate_summary(body);
  const std::size_t start = summary.find("qkcts certify "), end = summary.find('\n', start);
  fmt::print(
      "Certificate: {0}/certificate.json\n  {0}/summary.md\n  {0}/report.html\nA reviewer checks it:\n  qkcts "
      "verify-certificate {0}\nand, with the adapter in hand:\n  {1}\n",
      folder, summary.substr(start, end - start));
}

int certify(const CertifyArguments& given) {
  const std::vector<ReleasedSuite> suites = certified_suites(given.suites);
  for (const std::string& format : given.formats)
    if (!format_named(format)) throw UsageError(fmt::format("--format: '{}' is no format", format));
  if (!can_generate())
    throw UsageError(
        "certify draws fresh cases, which needs the full build; this one, without the reference, has "
        "verify-certificate");
  for (const char* variable : {"GTEST_FILTER", "GTEST_TOTAL_SHARDS"})
    if (std::getenv(variable) != nullptr)
      throw UsageError(fmt::format("certify: {} in the environment would leave cases out; unset it", variable));
  RunRequest request = request_of(given);
  require_destination(archive_path(given.output), FileKind::archive, {});
  require_room(given.output);
  catch_interruption();
  const Opened opened = look_at(request);
  if (!opened.unavailable.empty()) {
    fmt::print(stderr, "qkcts: {} is not usable here: {}; nothing was certified\n", given.adapter, opened.unavailable);
    return 5;
  }
  CertificateTerms terms = terms_of(given, request.adapter, opened.description);
  const CertificateCorpus corpus = make_corpus(given, suites, terms, opened.description);
  if (corpus.in_scope.empty()) {
    fmt::print(stderr, "qkcts: no case of these suites lies in what was declared; nothing was certified\n");
    return 5;
  }
  const auto inside = [&](std::string_view name) { return fmt::format("{}/{}", given.output, name); };
  const std::string outputs = corpus.file("outputs");
  std::error_code error;
  fs::remove(outputs, error);  // what an interrupted certification left
  const RunRecord record = run_and_keep(std::move(request), corpus, terms, outputs);
  fmt::print("{}\n{}", result_table(record), summary_text(record));
  if (record.interrupted_by != 0) return exit_code(record);
  // What is claimed and shown is what stands in run.json, digit for digit: a reviewer has nothing else.
  const std::string text = run_json_text(record);
  const RunRecord stored = record_from_json(text, std::string(package::run));
  make_room(given.output);
  place_file(outputs, inside(package::outputs));
  fs::remove(outputs, error);
  write_file_atomically(inside(package::run), text);
  write_file_atomically(inside(package::report), report_html(stored));
  fs::copy_file(corpus.file(fresh_suite), inside(package::fresh), error);
  if (error) throw WriteError(fmt::format("{}: cannot be written: {}", inside(package::fresh), error.message()));
  Json body = {{"schema", "qkcts-certificate/1"},
               {"certified_at", record.started},
               {"terms", to_json(terms)},
               {"claims", certificate_claims(stored, terms, corpus.suites)}};
  write_file_atomically(inside(package::summary), certificate_summary(body));
  body = package::seal(given.output, std::move(body));
  print_claims(given.output, body.at("claims"), body);
  return exit_code(record);
}

}  // namespace

void add_certify(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("certify", "Evidence that an adapter conforms, for others to judge again");
  auto given = std::make_shared<CertifyArguments>();
  sub->add_option("ADAPTER", given->adapter, "As for `qkcts run`")->required();
  sub->add_option("--suite", given->suites, "Suites, comma-separated: core, edge, robust, smoke")
      ->delimiter(',')
      ->type_name("LIST")
      ->capture_default_str();
  sub->add_option("--contract", given->contracts,
                  "Declared contracts (globs): what is unsupported inside fails. Without: whatever describe() declares")
      ->delimiter(',')
      ->type_name("GLOB");
  sub->add_option("--format", given->formats, "Declared formats, likewise")->delimiter(',')->type_name("LIST");
  sub->add_option("--profile", given->profile, "Judge by this machine profile, not by the one the adapter names");
  sub->add_option("--nonce", given->nonce, "The reviewer's: with the adapter's digest it is the seed of fresh cases")
      ->type_name("TEXT");
  sub->add_option("--known-failures", given->known_failures, "As for `qkcts run`; they stand in the title")
      ->type_name("FILE");
  sub->add_option("--corpus", given->corpora, "Corpora of the suites, if they are there (else they are generated)")
      ->type_name("FILE");
  sub->add_option("--repeat", given->repeat, "Rounds per case, as for `qkcts run`")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_option("--timeout", given->timeout, "Seconds that one case may take in the worker")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  sub->add_option("-o,--output", given->output, "Folder of the certificate; corpora go to DIR.corpora")
      ->type_name("DIR")
      ->capture_default_str();
  sub->footer(
      "Example: qkcts certify ./libmine.so --suite core,edge --nonce 'asked by N.N., 2 March' -o certificate\n"
      "Exit code: 0 conforming in the scope of the certificate, 1 not, 4 the adapter cannot be run, 5 nothing to "
      "certify");
  sub->callback([given, &command] { command = [given] { return certify(*given); }; });
}

}  // namespace qkcts::cli

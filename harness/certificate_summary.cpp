// SPDX-License-Identifier: Apache-2.0
// summary.md of a certificate: what it says, what it covers, what it does not, and how to see for oneself.
#include <fmt/format.h>

#include "harness/certificate.hpp"
#include "harness/failure_text.hpp"
#include "harness/report_markdown.hpp"

namespace qkcts {

namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string list_of(const Json& values, std::string_view otherwise) {
  std::string text;
  for (const Json& value : values) text += fmt::format("- {}\n", text_of(value));
  return text.empty() ? std::string(otherwise) + "\n" : text;
}

// The suites of a release, without the fresh part, as --suite takes them.
std::string suites_argument(const Json& terms) {
  std::string text;
  for (const Json& corpus : terms.at("corpora"))
    if (corpus.at("suite") != fresh_suite)
      text += fmt::format("{}{}", text.empty() ? "" : ",", text_of(corpus.at("suite")));
  return text;
}

// What a reviewer types, with the adapter in hand and a nonce of the reviewer's own.
std::string rerun_command(const Json& terms) {
  std::string command =
      fmt::format("qkcts certify {} --suite {}", shell_quoted(text_of(terms.at("adapter"))), suites_argument(terms));
  for (const Json& glob : terms.at("declared_contracts")) command += " --contract " + shell_quoted(text_of(glob));
  for (const Json& format : terms.at("declared_formats")) command += " --format " + shell_quoted(text_of(format));
  if (const std::string profile = text_of(terms.at("profile")); !profile.empty())
    command += " --profile " + shell_quoted(profile);
  if (terms.at("repeat") != 2) command += fmt::format(" --repeat {}", terms.at("repeat").get<int>());
  if (!terms.at("known_failures").is_null()) command += " --known-failures FILE";
  return command + " --nonce YOUR_OWN -o again";
}

std::string levels_text(const Json& levels) {
  std::string text = "| level | reached | |\n|---|---|---|\n";
  for (const Json& level : levels)
    text += fmt::format("| {} | {} | {} |\n", text_of(level.at("level")),
                        level.at("reached").get<bool>() ? "yes" : "no", text_of(level.at("detail")));
  return text;
}

std::string corpora_text(const Json& terms) {
  std::string text = "| suite | cases | digest |\n|---|---|---|\n";
  for (const Json& corpus : terms.at("corpora"))
    text += fmt::format("| {} | {} | `{}` |\n", text_of(corpus.at("suite")), corpus.at("cases").dump(),
                        text_of(corpus.at("digest")));
  return text;
}

std::string contracts_text(const Json& scope) {
  std::string text;
  for (const Json& contract : scope.at("contracts"))
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", text_of(contract.at("contract")),
                        contract.at("cases").dump());
  return text;
}

std::string known_failures_text(const Json& known) {
  std::string text;
  for (const Json& entry : known)
    text += fmt::format("- `{}` until {}: {} ({}); {}\n", text_of(entry.at("case")), text_of(entry.at("expires")),
                        markdown_text(text_of(entry.at("reason"))), markdown_text(text_of(entry.at("link"))),
                        text_of(entry.at("state")));
  return text.empty() ? "None.\n" : text;
}

std::string source_text(const Json& suite) {
  const std::string commit = text_of(suite.at("commit"));
  if (commit.empty()) return "an unknown source tree";
  const Json& changes = suite.at("changed_files");
  const bool clean = changes.is_number() && changes == 0;
  return fmt::format("commit `{}`, tree `{}`, {}", commit, text_of(suite.at("tree")),
                     clean               ? std::string("clean")
                     : changes.is_null() ? std::string("state unknown")
                                         : fmt::format("NOT CLEAN: {} files differ", changes.dump()));
}

}  // namespace

std::string certificate_summary(const Json& certificate) {
  const Json &claims = certificate.at("claims"), &terms = certificate.at("terms"), &scope = claims.at("scope");
  Json suspicious = claims.at("suspicious");
  if (!terms.at("nonce_given").get<bool>())
    suspicious.push_back(
        "the nonce was drawn by the submitter: only a re-run with a nonce of the reviewer's own shows that nothing "
        "was fitted to the fresh part");
  std::string text = fmt::format("# {}\n\n", markdown_text(text_of(claims.at("title"))));
  text += claims.at("conforms").get<bool>()
              ? "Every judged element lies within its proven budget.\n\n"
              : "THIS IMPLEMENTATION DOES NOT CONFORM in the scope of this certificate.\n\n";
  text += levels_text(claims.at("levels")) + "\n## Suspicious\n\n" + list_of(suspicious, "Nothing.");
  text += fmt::format(
      "\n## Scope\n\nAdapter {} {}, `{}`, SHA-256 `{}`.\nImplementations: {}\nFormats and profiles: {}\nStages: "
      "{}\nContracts (cases): {}\n\n",
      markdown_text(text_of(scope.at("adapter"))), markdown_text(text_of(scope.at("version"))),
      text_of(terms.at("adapter")), text_of(terms.at("adapter_sha256")), scope.at("implementations").dump(),
      scope.at("profiles").dump(), scope.at("stages").dump(), contracts_text(scope));
  text += terms.at("declared_contracts").empty() && terms.at("declared_formats").empty()
              ? "The capability set is what describe() declared before the run; see `terms.description`.\n\n"
              : fmt::format(
                    "The capability set was declared before the run: contracts {}, formats {}. What is "
                    "unsupported inside of it fails.\n\n",
                    terms.at("declared_contracts").dump(), terms.at("declared_formats").dump());
  text += "## Evidence\n\n" + corpora_text(terms);
  text += fmt::format(
      "\nThe suite `fresh` was drawn with seed {} from SHA-256(adapter || nonce), nonce `{}`.\nJudged by qkcts {} "
      "({}).\n",
      text_of(terms.at("seed")), text_of(terms.at("nonce")), text_of(terms.at("suite").at("version")),
      source_text(terms.at("suite")));
  if (!terms.at("fresh_left_out").empty())
    text += "\nLeft out of the fresh part:\n" + list_of(terms.at("fresh_left_out"), "");
  text += "\n## Known failures\n\n" + known_failures_text(claims.at("known_failures"));
  text +=
      "\n## To see for oneself\n\n```sh\nqkcts verify-certificate .      # judges outputs.h5 again, without the "
      "hardware\n" +
      rerun_command(terms) + "\n```\n";
  text += "\n## What is covered\n\nThe budgets hold for every implementation that computes so:\n" + theorem_text();
  text +=
      "\n## What this does not say\n\nNothing of other layers, of training, of a model's quality, of speed, of "
      "contracts, formats and shapes outside of the scope, or of other machines. Outputs can be forged: the "
      "re-run above is what tells. docs/certification.md says more.\n";
  return text;
}

}  // namespace qkcts

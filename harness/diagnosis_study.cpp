// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnosis_study.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

constexpr std::array formats = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};

bool is_right(NamedFirst named) {
  return named == NamedFirst::clause || named == NamedFirst::same_values;
}

std::string_view word(NamedFirst named) {
  switch (named) {
    case NamedFirst::clause:
      return "named first";
    case NamedFirst::same_values:
      return "same values";
    case NamedFirst::behind:
      return "named behind";
    case NamedFirst::other:
      return "something else";
    case NamedFirst::nothing:
      break;
  }
  return "nothing matches";
}

std::string outcome(const DiagnosedMutant& one) {
  return one.slug.empty() ? "no case fails in output or lse" : std::string(word(one.named));
}

std::string share(std::size_t some, std::size_t all) {
  if (all == 0) return "-";
  return fmt::format("{} of {} ({:.1f} %)", some, all, 100.0 * static_cast<double>(some) / static_cast<double>(all));
}

// Neither right nor without a case: what has to be explained.
std::vector<const DiagnosedMutant*> misses(const DiagnosisStudy& study) {
  std::vector<const DiagnosedMutant*> list;
  for (const DiagnosedMutant& one : study.mutants)
    if (!one.slug.empty() && !is_right(one.named)) list.push_back(&one);
  return list;
}

std::vector<const DiagnosedMutant*> without_case(const DiagnosisStudy& study) {
  std::vector<const DiagnosedMutant*> list;
  for (const DiagnosedMutant& one : study.mutants)
    if (one.slug.empty()) list.push_back(&one);
  return list;
}

std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

}  // namespace

NamedFirst named_first(const CaseDiagnosis& d, const std::string& id, const std::string& clause) {
  if (d.matches.empty()) return NamedFirst::nothing;
  const Suspect& first = d.matches.front();
  const std::vector<std::string> clauses = clauses_named(first);
  if (std::find(clauses.begin(), clauses.end(), clause) != clauses.end()) return NamedFirst::clause;
  for (const Suspect& match : d.matches) {
    const bool is_mutant = std::any_of(match.known_as.begin(), match.known_as.end(),
                                       [&](const KnownMistake& known) { return known.id == id; });
    if (is_mutant) return match.values == first.values ? NamedFirst::same_values : NamedFirst::behind;
  }
  return NamedFirst::other;
}

DiagnosisTally tally(const DiagnosisStudy& study, Format format) {
  DiagnosisTally t;
  std::vector<double> seconds;
  for (const DiagnosedMutant& one : study.mutants) {
    if (one.format != format) continue;
    if (one.slug.empty()) {
      ++t.without_case;
      continue;
    }
    ++t.diagnosed;
    t.right += is_right(one.named) ? 1 : 0;
    t.same_values += one.named == NamedFirst::same_values ? 1 : 0;
    t.cut += one.cut ? 1 : 0;
    seconds.push_back(one.seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  if (!seconds.empty()) {
    t.median_seconds = seconds[seconds.size() / 2];
    t.max_seconds = seconds.back();
  }
  return t;
}

bool keeps_promise(const DiagnosisStudy& study) {
  const auto enough = [&](Format format, std::size_t percent) {
    const DiagnosisTally t = tally(study, format);
    return 100 * t.right >= percent * t.diagnosed;
  };
  return study.accused.empty() && enough(Format::binary32, 95) && enough(Format::bfloat16, 80);
}

std::string diagnosis_study_text(const DiagnosisStudy& study) {
  std::string text;
  for (const Format format : formats) {
    const DiagnosisTally t = tally(study, format);
    if (t.diagnosed + t.without_case == 0) continue;
    text += wrapped(fmt::format("{}: ", parameters(format).name),
                    fmt::format("{} named first, {} of them by the same values; {} without a failing case",
                                share(t.right, t.diagnosed), t.same_values, t.without_case),
                    2);
    text += fmt::format("  seconds per case: median {:.1f}, largest {:.1f}; ended by the clock: {}\n", t.median_seconds,
                        t.max_seconds, t.cut);
  }
  for (const DiagnosedMutant* one : misses(study))
    text +=
        wrapped("  miss: ",
                fmt::format("{} ({}, {}) on {}", one->id, one->clause, parameters(one->format).name, one->slug), 4) +
        wrapped("    ", fmt::format("{}{}{}", word(one->named), one->first.empty() ? "" : "; first: ", one->first));
  for (const DiagnosedMutant* one : without_case(study))
    text += fmt::format("  no case fails in output or lse: {} ({})\n", one->id, parameters(one->format).name);
  text += fmt::format("right kernels: {} runs, {} diagnosed as wrong\n", study.valid_runs, study.accused.size());
  for (const std::string& run : study.accused) text += fmt::format("  {}\n", run);
  return text;
}

std::string diagnosis_study_markdown(const DiagnosisStudy& study) {
  std::string text = "| corpus | cases | digest |\n|---|---|---|\n";
  for (const AdequacyCorpus& corpus : study.corpora)
    text += fmt::format("| {} | {} | `{}` |\n", corpus.suite, corpus.cases, corpus.digest);
  text +=
      "\n| format | true clause named first | of these by the same values | no case fails in output or lse | seconds, "
      "median | largest | ended by the clock |\n|---|---|---|---|---|---|---|\n";
  for (const Format format : formats) {
    const DiagnosisTally t = tally(study, format);
    if (t.diagnosed + t.without_case == 0) continue;
    text +=
        fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} |\n", parameters(format).name,
                    share(t.right, t.diagnosed), t.same_values, t.without_case, t.median_seconds, t.max_seconds, t.cut);
  }
  text += fmt::format("\nRight kernels: {} runs, {} diagnosed as wrong.\n", study.valid_runs, study.accused.size());
  text += "\n| missed | clause | format | what is said | on |\n|---|---|---|---|---|\n";
  for (const DiagnosedMutant* one : misses(study))
    text += fmt::format("| `{}` | {} | {} | {}{}{} | {} |\n", one->id, one->clause, parameters(one->format).name,
                        word(one->named), one->first.empty() ? "" : ": ", cell(one->first), one->slug);
  text += "\n| no case fails in output or lse | clause | format |\n|---|---|---|\n";
  for (const DiagnosedMutant* one : without_case(study))
    text += fmt::format("| `{}` | {} | {} |\n", one->id, one->clause, parameters(one->format).name);
  return text;
}

std::string diagnosis_study_csv(const DiagnosisStudy& study) {
  std::string text = "mutant,clause,by,format,case,outcome,matches,cut,seconds\n";
  for (const DiagnosedMutant& one : study.mutants)
    text += fmt::format("{},{},{},{},{},{},{},{},{:.2f}\n", one.id, one.clause,
                        one.is_contract ? "contract" : "adapter", parameters(one.format).name, one.slug, outcome(one),
                        one.matches, one.cut ? "yes" : "no", one.seconds);
  return text;
}

Json diagnosis_study_json(const DiagnosisStudy& study) {
  Json document = {{"schema", "qkcts-diagnosis-study/1"}};
  for (const AdequacyCorpus& corpus : study.corpora)
    document["corpora"].push_back({{"suite", corpus.suite}, {"digest", corpus.digest}, {"cases", corpus.cases}});
  document["mutants"] = Json::array();
  for (const DiagnosedMutant& one : study.mutants)
    document["mutants"].push_back({{"id", one.id},
                                   {"clause", one.clause},
                                   {"by", one.is_contract ? "contract" : "adapter"},
                                   {"format", parameters(one.format).name},
                                   {"case", one.slug.empty() ? Json() : Json(one.slug)},
                                   {"outcome", outcome(one)},
                                   {"right", !one.slug.empty() && is_right(one.named)},
                                   {"first", one.first},
                                   {"matches", one.matches},
                                   {"cut", one.cut},
                                   {"seconds", one.seconds}});
  document["valid"] = {{"runs", study.valid_runs}, {"accused", study.accused}};
  return document;
}

}  // namespace qkcts

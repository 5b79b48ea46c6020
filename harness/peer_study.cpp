// SPDX-License-Identifier: Apache-2.0
#include "harness/peer_study.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "harness/adequacy_report.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

constexpr std::array formats = {Format::binary32, Format::binary16, Format::bfloat16};
constexpr std::size_t most_listed = 40;

std::string_view verdict_word(PeerVerdict verdict) {
  switch (verdict) {
    case PeerVerdict::accepts:
      return "accepts";
    case PeerVerdict::rejects:
      return "rejects";
    case PeerVerdict::not_applicable:
      break;
  }
  return "not applicable";
}

bool is_judged(const PeerTrial& trial, std::size_t peer) {
  return peer < trial.by_peer.size() && trial.by_peer[peer].verdict != PeerVerdict::not_applicable;
}
bool is_accepted(const PeerTrial& trial, std::size_t peer) {
  return is_judged(trial, peer) && trial.by_peer[peer].verdict == PeerVerdict::accepts;
}
bool tells(const PeerTrial& trial, std::size_t peer) {
  return is_judged(trial, peer) && trial.accepts_control[peer];
}

std::string part(PeerTally::Share share) {
  return share.all == 0 ? "-" : fmt::format("{} of {}", share.some, share.all);
}

void count_passage(PeerTally::Share& share, const PeerTrial& trial, std::size_t peer) {
  if (!tells(trial, peer)) return;
  ++share.all;
  share.some += is_accepted(trial, peer) ? 1 : 0;
}

bool is_empty(const PeerTally& t) {
  return t.passed_ours.all + t.passed_ordinary.all + t.valid_ours.all + t.valid_ordinary.all == 0;
}

// How many peers let a wrong kernel through on ordinary inputs, of those that judge it there, over all formats.
struct Passage {
  std::string id, clause;
  PeerTally::Share ours, ordinary;
};
std::vector<Passage> passages(const PeerStudy& study) {
  std::vector<Passage> list;
  for (const WrongKernel& kernel : study.wrong) {
    auto found = std::find_if(list.begin(), list.end(), [&](const Passage& p) { return p.id == kernel.id; });
    if (found == list.end()) found = list.insert(list.end(), Passage{kernel.id, kernel.clause, {}, {}});
    for (std::size_t peer = 0; peer < study.peers.size(); ++peer) {
      count_passage(found->ours, kernel.ours, peer);
      count_passage(found->ordinary, kernel.ordinary, peer);
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Passage& a, const Passage& b) {
    return a.ours.some != b.ours.some ? a.ours.some > b.ours.some : a.ordinary.some > b.ordinary.some;
  });
  return list;
}

Json finding_json(const PeerFinding& finding) {
  Json entry = {{"verdict", verdict_word(finding.verdict)}};
  if (finding.verdict == PeerVerdict::not_applicable) {
    entry["why"] = finding.why;
  } else {
    entry["share"] = std::isfinite(finding.share) ? Json(finding.share) : Json("inf");
    entry["stage"] = finding.stage;
  }
  return entry;
}

Json trial_json(const PeerStudy& study, const PeerTrial& trial) {
  if (trial.by_peer.empty()) return nullptr;
  Json entry = {{"case", trial.slug}, {"peers", Json::object()}};
  for (std::size_t peer = 0; peer < study.peers.size(); ++peer)
    entry["peers"][study.peers[peer].id] = finding_json(trial.by_peer[peer]);
  for (std::size_t peer = 0; peer < trial.accepts_control.size(); ++peer)
    entry["peers"][study.peers[peer].id]["accepts_control"] = bool{trial.accepts_control[peer]};
  return entry;
}

}  // namespace

PeerTally tally(const PeerStudy& study, std::size_t peer, Format format) {
  PeerTally tally;
  for (const WrongKernel& kernel : study.wrong) {
    if (kernel.format != format) continue;
    count_passage(tally.passed_ours, kernel.ours, peer);
    count_passage(tally.passed_ordinary, kernel.ordinary, peer);
  }
  for (const ValidRun& run : study.valid) {
    if (run.format != format || !is_judged(run.trial, peer)) continue;
    PeerTally::Share& share = run.is_ordinary ? tally.valid_ordinary : tally.valid_ours;
    ++share.all;
    share.some += is_accepted(run.trial, peer) ? 0 : 1;
  }
  return tally;
}

std::string peer_study_text(const PeerStudy& study) {
  std::string text;
  for (const AdequacyCorpus& corpus : study.corpora)
    text += wrapped(
        corpus.path + ": ",
        fmt::format("suite {}, {}, digest {:.12}", corpus.suite, counted(corpus.cases, "case", "cases"), corpus.digest),
        2);
  text += fmt::format("\n{:<20} {:<9} {:>12} {:>12} {:>11} {:>11}\n", "rules of", "format", "wrong, ours", "Gaussian",
                      "valid, ours", "Gaussian");
  for (std::size_t peer = 0; peer < study.peers.size(); ++peer)
    for (const Format format : formats) {
      const PeerTally t = tally(study, peer, format);
      if (is_empty(t)) continue;
      text += fmt::format("{:<20} {:<9} {:>12} {:>12} {:>11} {:>11}\n", study.peers[peer].id, parameters(format).name,
                          part(t.passed_ours), part(t.passed_ordinary), part(t.valid_ours), part(t.valid_ordinary));
    }
  return text + "\n" +
         wrapped("",
                 "wrong: kernels that these rules let through, of those that show in a stage with a rule, where "
                 "that accepts the right kernel; on the case of ours that kills each, and on Gaussian inputs of "
                 "unit scale. valid: runs of kernels within their budgets that the rules reject, on both. Our "
                 "reading of public rules; each suite tests its own operators on its own inputs");
}

std::string peer_study_markdown(const PeerStudy& study) {
  std::string text = "| corpus | cases | digest |\n|---|---|---|\n";
  for (const AdequacyCorpus& corpus : study.corpora)
    text += fmt::format("| {} | {} | `{}` |\n", corpus.suite, corpus.cases, corpus.digest);
  text +=
      "\n| rules of | format | wrong, our cases | wrong, Gaussian | valid rejected, our cases | valid rejected, "
      "Gaussian "
      "|\n|---|---|---|---|---|---|\n";
  for (std::size_t peer = 0; peer < study.peers.size(); ++peer)
    for (const Format format : formats) {
      const PeerTally t = tally(study, peer, format);
      if (is_empty(t)) continue;
      text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", study.peers[peer].title, parameters(format).name,
                          part(t.passed_ours), part(t.passed_ordinary), part(t.valid_ours), part(t.valid_ordinary));
    }
  text +=
      "\n| wrong kernel | clause | let through on our cases (rules and formats) | on Gaussian inputs "
      "|\n|---|---|---|---|\n";
  std::size_t listed = 0;
  for (const Passage& passage : passages(study)) {
    if (++listed > most_listed) break;
    text += fmt::format("| `{}` | {} | {} | {} |\n", passage.id, passage.clause, part(passage.ours),
                        part(passage.ordinary));
  }
  return text;
}

std::string peer_study_csv(const PeerStudy& study) {
  std::string text = "kernel,clause,valid,inputs,format,case,peer,verdict,share,stage,accepts_control\n";
  const auto lines = [&](const std::string& head, std::string_view inputs, Format format, const PeerTrial& trial) {
    for (std::size_t peer = 0; peer < trial.by_peer.size(); ++peer)
      text += fmt::format("{},{},{},{},{},{},{:.6g},{},{}\n", head, inputs, parameters(format).name, trial.slug,
                          study.peers[peer].id, verdict_word(trial.by_peer[peer].verdict), trial.by_peer[peer].share,
                          trial.by_peer[peer].stage,
                          trial.accepts_control.empty() ? ""
                          : trial.accepts_control[peer] ? "yes"
                                                        : "no");
  };
  for (const WrongKernel& kernel : study.wrong) {
    const std::string head = fmt::format("{},{},no", kernel.id, kernel.clause);
    lines(head, "ours", kernel.format, kernel.ours);
    lines(head, "ordinary", kernel.format, kernel.ordinary);
  }
  for (const ValidRun& run : study.valid)
    lines(fmt::format("{},,yes", run.kernel), run.is_ordinary ? "ordinary" : "ours", run.format, run.trial);
  return text;
}

Json peer_study_json(const PeerStudy& study) {
  Json document = {{"schema", "qkcts-peer-study/1"}};
  for (const AdequacyCorpus& corpus : study.corpora)
    document["corpora"].push_back({{"suite", corpus.suite}, {"digest", corpus.digest}, {"cases", corpus.cases}});
  document["wrong"] = Json::array();
  for (const WrongKernel& kernel : study.wrong)
    document["wrong"].push_back({{"id", kernel.id},
                                 {"clause", kernel.clause},
                                 {"by", kernel.is_contract ? "contract" : "adapter"},
                                 {"format", parameters(kernel.format).name},
                                 {"ours", trial_json(study, kernel.ours)},
                                 {"ordinary", trial_json(study, kernel.ordinary)}});
  document["valid"] = Json::array();
  for (const ValidRun& run : study.valid)
    document["valid"].push_back({{"kernel", run.kernel},
                                 {"format", parameters(run.format).name},
                                 {"inputs", run.is_ordinary ? "ordinary" : "ours"},
                                 {"trial", trial_json(study, run.trial)}});
  return document;
}

}  // namespace qkcts

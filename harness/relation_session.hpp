// SPDX-License-Identifier: Apache-2.0
// The relations of a run: which cases they need, whose outputs are kept until the last of them was judged.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case_run.hpp"
#include "harness/relation_result.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {

class RelationSession {
 public:
  // Relations whose slug matches the glob, or all of whose cases are among `slugs`. `corpus` outlives the object.
  RelationSession(const CorpusReader& corpus, const std::string& glob, const std::vector<std::string_view>& slugs);

  const std::vector<Relation>& relations() const { return relations_; }
  // Before the first round: the others are left out.
  void keep_if(const std::function<bool(const Relation&)>& wanted);
  // Nothing was judged yet.
  void begin_round();
  // Judged in an earlier run: its cases need not be kept for it.
  void skip(const std::string& slug);
  // Does a relation still need the outputs of this case?
  bool needs(const std::string& slug) const;
  void keep(const CaseResult& result, KeptOutputs outputs);

  // Runs a case that the selection left out, and hands its result to keep().
  using RunCase = std::function<void(const std::string& slug)>;
  RelationResult judge(const std::string& slug, const AdapterDescription& description, const RunCase& run_case);

 private:
  struct Kept {
    Verdict verdict = Verdict::not_run;
    std::string detail, profile;
    KeptOutputs outputs;
  };
  RelationResult judged(const Relation& relation, const AdapterDescription& description) const;
  void release(const Relation& relation);

  const CorpusReader& corpus_;
  std::vector<Relation> relations_;
  std::map<std::string, int> waiting_;  // case -> relations that still need it
  std::map<std::string, Kept> kept_;
};

}  // namespace qkcts

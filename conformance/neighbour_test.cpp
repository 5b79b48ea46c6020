// SPDX-License-Identifier: Apache-2.0
#include "conformance/neighbour.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

std::set<std::string> names_of(const char* contract) {
  std::set<std::string> names;
  for (const Neighbour& neighbour : neighbours(shipped_contract(contract).terms)) names.insert(neighbour.name);
  return names;
}

TEST(Neighbours, AreTheUsualMistakes) {
  const std::set<std::string> names = names_of("qwen3_rmsnorm");
  for (const char* expected :
       {"q_norm.root=outside_root", "norm.root=max_root",      "k_norm.eps=1e-05",          "norm.eps=0",
        "norm.gain=one_plus_w",     "norm.center=true",        "norm.statistic=sum_square", "q_norm.axis=full_width",
        "q_norm.kind=none",         "norm.kind=none",          "rope.order=rope_then_norm", "rope.pairing=interleaved",
        "rope.sense=negative",      "rope.theta=1e+07",        "score.temperature=2",       "score.softcap=50",
        "mask.causal=false",        "mask.alignment=top_left", "heads.mapping=tile",        "softmax.base=two",
        "softmax.lse_base=two"})
    EXPECT_TRUE(names.contains(expected)) << expected;
  EXPECT_FALSE(names.contains("q_norm.root=inside_root")) << "that is the contract itself";
}

TEST(Neighbours, OfWindowsAndCaps) {
  const std::set<std::string> names = names_of("gemma2_softcap_window");
  for (const char* expected : {"score.softcap=null", "score.softcap=100", "mask.window=null"})
    EXPECT_TRUE(names.contains(expected)) << expected;
  EXPECT_EQ(std::count_if(names.begin(), names.end(), [](const auto& n) { return n.starts_with("mask.window={"); }), 3)
      << "left one more, one less; right one more";
}

// Every neighbour is valid, new, and differs in its one field (or in the same field of both norms).
TEST(Neighbours, DifferInOneClauseAndAreValid) {
  for (const std::string& name : shipped_contracts()) {
    const Contract own = shipped_contract(name);
    std::set<std::string> digests = {contract_digest(own)};
    for (const Neighbour& neighbour : neighbours(own.terms)) {
      EXPECT_EQ(contract_fault(neighbour.terms), "") << name << " " << neighbour.name;
      Contract other = own;
      other.terms = neighbour.terms;
      EXPECT_TRUE(digests.insert(contract_digest(other)).second) << name << " " << neighbour.name;
    }
    EXPECT_GE(digests.size(), 20U) << name;
  }
}

TEST(Neighbours, EveryFieldOfSomeContractIsChanged) {
  std::set<std::string> seen;
  for (const std::string& name : shipped_contracts())
    for (const Neighbour& neighbour : neighbours(shipped_contract(name).terms))
      seen.insert(neighbour.name.substr(0, neighbour.name.find('=')));
  for (const std::string& path : contract_field_paths()) EXPECT_TRUE(seen.contains(path)) << path;
}

TEST(CaseUnder, KeepsWhatTheOtherContractUses) {
  Case c;
  c.contract = shipped_contract("clause_norm_on_q_only");
  c.shape = {1, 2, 1, 2, 3, 4, 2};
  for (const InputRequirement& need : required_inputs(c.contract.terms, c.shape, c.inputs.format))
    c.inputs.set(need.input, Tensor::zeros(need.type, need.shape));
  ASSERT_EQ(case_fault(c), "");
  qkcts_contract terms = c.contract.terms;
  terms.q_norm = {};
  const std::optional<Case> without = case_under(c, terms);
  ASSERT_TRUE(without.has_value());
  EXPECT_FALSE(without->inputs.has(Input::q_gain));
  terms = c.contract.terms;
  terms.mask.kv_lengths = 1;  // needs an input that the case does not have
  EXPECT_FALSE(case_under(c, terms).has_value());
}

}  // namespace
}  // namespace qkcts

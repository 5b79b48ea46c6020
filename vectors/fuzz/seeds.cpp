// SPDX-License-Identifier: Apache-2.0
#include "vectors/fuzz/seeds.hpp"

#include "conformance/contract.hpp"
#include "conformance/machine_profile.hpp"
#include "vectors/plan.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts::fuzz {
namespace {

// As small as a file of its version can be: a fuzzer changes few bytes at a time.
std::vector<Seed> corpora() {
  const GoldenCase newest = sample_golden("clause_kv_lengths", "padded", Format::bfloat16, "1,1,1,2,2,2,1");
  const GoldenCase pointed =
      without_separation(sample_golden("clause_round_scores", "gaussian", Format::binary32, "1,1,1,2,2,2,1"));
  const TemporaryFolder folder;
  const auto bytes_of = [&](const GoldenCase& golden) { return file_bytes(write_corpus(folder, "seed.h5", {golden})); };
  return {{"version_1", bytes_of(without_separation(newest))},
          {"version_2", bytes_of(golden_with_excluded_keys(Format::bfloat16))},
          {"version_3", bytes_of(pointed)},
          {"version_4", bytes_of(newest)}};
}

}  // namespace

std::vector<Seed> good_seeds(std::string_view target) {
  std::vector<Seed> seeds;
  if (target == "corpus") return corpora();
  if (target == "contract")
    for (const std::string& name : shipped_contracts())
      if (name.rfind("clause_", 0) == 0) seeds.push_back({name, canonical_json(shipped_contract(name))});
  if (target == "profile")
    for (const std::string& name : shipped_profiles()) seeds.push_back({name, std::string(shipped_profile_text(name))});
  if (target == "plan") {
    constexpr std::string_view start =
        R"({"schema": "qkcts-plan/1", "suite": "s", "title": "t", "seed": 1, "groups": [)";
    const auto add = [&](const char* name, std::string_view groups) {
      seeds.push_back({name, std::string(start) + std::string(groups) + "]}"});
    };
    add("one_case",
        R"({"contracts": ["plain_sdpa"], "families": ["gaussian"], "formats": ["binary32"], "shapes": ["1,1,1,2,2,2,1"]})");
    add("several", R"({"contracts": ["qwen3_rmsnorm", "gemma2_softcap"], "families": ["gaussian", "tied"],)"
                   R"( "formats": ["f32", "bfloat16"], "shapes": ["1,2,1,3,4,16,6", "2,4,2,1,5,16,4"], "rows": 4})");
    add("two_groups",
        R"({"contracts": ["henry2020_l2"], "families": ["padded"], "formats": ["binary16"],)"
        R"( "shapes": ["2,2,1,2,3,4,4"]},)"
        R"( {"contracts": ["clause_eps_outside_root"], "families": ["eps_edge"], "formats": ["binary64"],)"
        R"( "shapes": ["1,1,1,2,2,8,1"], "allow": {"eps": "a reason"}})");
  }
  return seeds;
}

}  // namespace qkcts::fuzz

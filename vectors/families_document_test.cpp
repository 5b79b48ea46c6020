// SPDX-License-Identifier: Apache-2.0
// docs/families.md says of every family what the code says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/file.hpp"
#include "vectors/input_family.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

TEST(FamiliesDocument, HoldsTheTableThatTheProgramPrints) {
  const std::string text = read_text_file(std::string(QKCTS_SOURCE_DIR) + "/docs/families.md");
  const std::string table = family_table();
  EXPECT_NE(text.find("\n\n" + table), std::string::npos)
      << "put the output of `qkcts generate --list-families` into docs/families.md:\n"
      << table;
}

// The chain of docs/families.md: row t of the sweep has 2^t times the norm of row 0.
struct Chain {
  std::vector<double> score;    // largest |score| of the row
  std::vector<double> entropy;  // as a share of the largest possible
};

Chain chain_of(const std::string& contract) {
  const GoldenCase golden = sample_golden(contract, "magnitude_sweep", Format::binary32, "1,2,1,15,20,24,20");
  const GoldenStage& capped = golden.stages[QKCTS_STAGE_CAPPED];
  const ProvenStage& logits = capped.present ? capped.values : golden.stages[QKCTS_STAGE_SCORES].values;
  const ProvenStage& probs = golden.stages[QKCTS_STAGE_PROBS].values;
  Chain chain;
  for (std::size_t t = 0; t < 15; ++t) {
    double largest = 0, entropy = 0;
    for (std::size_t j = t * 20; j < (t + 1) * 20; ++j) {
      largest = std::max(largest, std::abs(logits.hi[j]));
      if (probs.hi[j] > 0) entropy -= probs.hi[j] * std::log(probs.hi[j]);
    }
    const bool causal = golden.input.contract.terms.mask.causal != 0;
    const double visible = causal ? 6 + static_cast<double>(t) : 20;
    chain.score.push_back(largest);
    chain.entropy.push_back(entropy / std::log(visible));
  }
  return chain;
}

TEST(FamiliesDocument, WithoutANormEntropyFallsToZero) {
  const Chain chain = chain_of("plain_sdpa");
  EXPECT_GT(chain.entropy.front(), 0.8);
  EXPECT_LT(chain.entropy.back(), 1e-6);
  EXPECT_GT(chain.score.back(), 0x1p13 * chain.score.front());
  for (std::size_t t = 2; t < 15; ++t) EXPECT_LE(chain.entropy[t], chain.entropy[t - 2] + 0.02) << t;
}

TEST(FamiliesDocument, ANormKeepsEntropyWhateverTheMagnitude) {
  for (const char* contract : {"qwen3_rmsnorm", "rmsnorm_softcap"}) {
    const Chain chain = chain_of(contract);
    for (std::size_t t = 0; t < 15; ++t) {
      EXPECT_GT(chain.entropy[t], 0.4) << contract << " " << t;
      EXPECT_LT(chain.score[t], 3 * chain.score[0] + 1) << contract << " " << t;
    }
  }
}

// The cap bounds what arrives at the softmax, but at 50 it leaves room for one key to win; far beyond it all keys of
// one sign are equal.
TEST(FamiliesDocument, ACapBoundsScoresWithoutSavingEntropy) {
  const Chain chain = chain_of("gemma2_softcap");
  EXPECT_LE(*std::max_element(chain.score.begin(), chain.score.end()), 50);
  EXPECT_GT(chain.score.back(), 49.9);
  EXPECT_GT(chain.entropy.front(), 0.8);
  EXPECT_LT(*std::min_element(chain.entropy.begin(), chain.entropy.end()), 1e-6);
  EXPECT_GT(chain.entropy.back(), 0.4);
}

}  // namespace
}  // namespace qkcts

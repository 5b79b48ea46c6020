// SPDX-License-Identifier: Apache-2.0
#include "vectors/own_profile.hpp"

#include <gtest/gtest.h>

#include "conformance/contract.hpp"
#include "conformance/json.hpp"
#include "vectors/case_digest.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/verify.hpp"

namespace qkcts {
namespace {

// A shipped profile under another name, with another accuracy of the exponential.
std::string changed_profile(const char* base, const char* name, double k_exp) {
  Json document = parse_json(shipped_profile_text(base), base);
  document["name"] = name;
  document["parameters"]["k_exp"]["value"] = k_exp;
  return document.dump(2);
}

NamedProfile from_file(const TemporaryFolder& folder, const std::string& text) {
  write_bytes(folder.file("profile.json"), text);
  return load_profile(folder.file("profile.json"));
}

std::string refusal(const TemporaryFolder& folder, const std::string& text) {
  try {
    from_file(folder, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

Plan plan_of(const std::vector<Format>& formats) {
  Plan plan;
  plan.suite = "test";
  for (const Format format : formats)
    plan.cases.push_back(sample_plan("qwen3_rmsnorm", "gaussian", format, "1,2,1,3,4,8,6"));
  return plan;
}

std::string generate(const Plan& plan, const std::string& path) {
  GenerateOptions options;
  options.generator_version = "test";
  return generate_corpus(plan, path, options).digest;
}

TEST(OwnProfile, TakesNoNameThatIsShipped) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder, changed_profile("f32", "f32", 9)).find("f32 is a shipped profile that says something else"),
            std::string::npos);
  EXPECT_NE(refusal(folder, changed_profile("f32", "tf32", 9)).find("give yours another name"), std::string::npos);
  EXPECT_NE(refusal(folder, changed_profile("f32", "My profile", 9)).find("a-z, 0-9 and _"), std::string::npos);
  EXPECT_NE(refusal(folder, changed_profile("f32", "mine", 0.1)).find("must be >= 0.5"), std::string::npos);
  EXPECT_EQ(refusal(folder, changed_profile("f32", "mine", 9)), "accepted");
}

TEST(OwnProfile, FitsIntoACorpus) {
  const TemporaryFolder folder;
  Json document = parse_json(changed_profile("f32", "mine", 9), "mine");
  for (auto& [key, entry] : document["parameters"].items()) entry["source"] = std::string(4000, 's');
  EXPECT_NE(refusal(folder, document.dump()).find("60000 are allowed: shorten its sources"), std::string::npos)
      << refusal(folder, document.dump());
}

TEST(OwnProfile, AFileThatSaysTheSameIsTheShippedOne) {
  const TemporaryFolder folder;
  EXPECT_TRUE(from_file(folder, std::string(shipped_profile_text("f32"))).text.empty());
  EXPECT_TRUE(from_file(folder, changed_profile("f32", "f32", 2.5)).text.empty()) << "blanks and order say nothing";
  EXPECT_TRUE(load_profile("tf32").text.empty());
  EXPECT_FALSE(from_file(folder, changed_profile("f32", "mine", 2.5)).text.empty());
  EXPECT_THROW(load_profile("no_such_profile"), InputError);
  EXPECT_THROW(load_profile(folder.file("none.json")), InputError);
}

TEST(OwnProfile, ACorpusHoldsItsTextAndIsVerifiedByIt) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.h5");
  const std::string plain = generate(plan_of({Format::binary32, Format::bfloat16}), path);
  EXPECT_EQ(CorpusReader(path).info().format_version, 4);

  Plan plan = plan_of({Format::binary32, Format::bfloat16});
  add_profile(plan, from_file(folder, changed_profile("f32", "mine", 9)));
  const std::string digest = generate(plan, path);
  EXPECT_NE(digest, plain);
  const CorpusReader reader(path);
  EXPECT_EQ(reader.info().format_version, 4);
  const GoldenCase golden = reader.read(plan.cases[0].slug);
  EXPECT_EQ(golden.profiles, (std::vector<std::string>{"f32", "f32_ftz", "mine"}));
  ASSERT_EQ(golden.own_profiles.size(), 1U);
  EXPECT_EQ(profile_named("mine", golden.own_profiles).k_exp, 9);
  EXPECT_EQ(profile_named("f32", golden.own_profiles).k_exp, 2.5);
  const GoldenCase other = reader.read(plan.cases[1].slug);
  EXPECT_EQ(other.profiles, (std::vector<std::string>{"bf16_f32acc"}));
  EXPECT_TRUE(other.own_profiles.empty());
  // Without what version 4 brought the text alone makes a file one of version 3.
  EXPECT_EQ(CorpusReader(write_corpus(folder, "b.h5", {without_separation(golden)})).info().format_version, 3);
  EXPECT_EQ(CorpusReader(write_corpus(folder, "c.h5", {without_separation(other)})).info().format_version, 1);

  // Its budgets are its own: wider wherever an exponential counts, and nowhere else.
  const GoldenStage& probs = golden.stages[QKCTS_STAGE_PROBS];
  const GoldenStage& scores = golden.stages[QKCTS_STAGE_SCORES];
  EXPECT_GT(probs.budgets[2].delta[1], probs.budgets[0].delta[1]);
  EXPECT_EQ(scores.budgets[2].delta, scores.budgets[0].delta);

  VerifyOptions options;
  options.sample = 100;
  EXPECT_TRUE(verify_corpus(path, options).mismatches.empty());
}

TEST(OwnProfile, AShippedOneBySelectionIsNotStored) {
  const TemporaryFolder folder;
  Plan plan = plan_of({Format::binary32});
  add_profile(plan, load_profile("f32_lanes8"));
  generate(plan, folder.file("a.h5"));
  const CorpusReader reader(folder.file("a.h5"));
  EXPECT_TRUE(reader.contents().profiles.empty());
  EXPECT_EQ(reader.read(plan.cases[0].slug).profiles, (std::vector<std::string>{"f32", "f32_ftz", "f32_lanes8"}));
}

TEST(OwnProfile, NeedsACaseOfItsFormat) {
  Plan plan = plan_of({Format::bfloat16});
  EXPECT_THROW(add_profile(plan, load_profile("f32_lanes8")), InputError);
}

TEST(OwnProfile, TwoOfOneNameAreRefused) {
  const TemporaryFolder folder;
  Plan plan = plan_of({Format::binary32});
  add_profile(plan, from_file(folder, changed_profile("f32", "mine", 9)));
  add_profile(plan, from_file(folder, changed_profile("f32", "mine", 9)));
  EXPECT_EQ(plan.cases[0].profiles, (std::vector<std::string>{"f32", "f32_ftz", "mine"}));
  EXPECT_THROW(add_profile(plan, from_file(folder, changed_profile("f32", "mine", 8))), InputError);
}

// The text is part of what the file says: no word of it can be changed, nor can the file lose it.
TEST(OwnProfile, ItsTextIsInTheDigestOfTheCorpus) {
  const TemporaryFolder folder;
  Plan plan = plan_of({Format::binary32});
  add_profile(plan, from_file(folder, changed_profile("f32", "mine", 9)));
  generate(plan, folder.file("a.h5"));
  std::string bytes = file_bytes(folder.file("a.h5"));
  const std::size_t at = bytes.find("{\"name\":\"mine\"");
  ASSERT_NE(at, std::string::npos);
  const std::size_t value = bytes.find("\"value\":9}", at);
  ASSERT_NE(value, std::string::npos);
  bytes[value + 8] = '8';
  write_bytes(folder.file("b.h5"), bytes);
  EXPECT_THROW(CorpusReader(folder.file("b.h5")), InputError);
  const DigestEntry entry{"mine", own_profile_digest("{}")};
  EXPECT_NE(corpus_digest("s", 1, {}, {}, {entry}), corpus_digest("s", 1, {}, {}));
  EXPECT_NE(corpus_digest("s", 1, {}, {}, {entry}),
            corpus_digest("s", 1, {}, {}, {{"mine", own_profile_digest("{ }")}}));
}

TEST(OwnProfile, FaultsOfATextInAFile) {
  const TemporaryFolder folder;
  const std::string text = from_file(folder, changed_profile("f32", "mine", 9)).text;
  EXPECT_EQ(own_profile_fault("mine", text), "");
  EXPECT_EQ(own_profile_fault("yours", text), "holds a profile of another name");
  EXPECT_EQ(own_profile_fault("f32", text), "takes the name of a shipped profile");
  EXPECT_EQ(own_profile_fault("mine", changed_profile("f32", "mine", 9)), "is not written in the canonical way");
  EXPECT_NE(own_profile_fault("mine", "{}").find("json"), std::string::npos);
}

}  // namespace
}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_master.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <span>

#include "vectors/corpus_join.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/generate_shard.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/schema.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

Plan small_plan() {
  Plan plan;
  plan.suite = "test";
  plan.seed = 7;
  for (const char* shape : {"1,2,1,3,4,8,6", "1,2,1,5,9,8,6", "2,2,1,3,4,8,6"})
    for (const char* contract : {"plain_sdpa", "qwen3_rmsnorm"})
      plan.cases.push_back(sample_plan(contract, "gaussian", Format::binary32, shape));
  return plan;
}

std::string fault(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

std::string reading_fault(const std::string& path) {
  return fault([&] { const CorpusReader reader(path); });
}

#define EXPECT_FAULT(found, part) EXPECT_NE((found).find(part), std::string::npos) << (found)

class Master : public testing::Test {
 protected:
  // As `generate` writes them, from cases that are generated once.
  std::vector<std::string> make_shards(std::uint32_t count, std::uint64_t seed = 7) {
    Plan plan = small_plan();
    plan.seed = seed;
    std::vector<std::string> paths;
    for (std::uint32_t i = 1; i <= count; ++i) {
      const Shard shard{i, count};
      paths.push_back(folder_.file("shard" + std::to_string(i) + ".h5"));
      write(cut_plan(plan, shard), {"test", "test", seed, shard_text(shard), plan_digest(plan)}, paths.back());
    }
    return paths;
  }

  std::string make_whole() {
    write(small_plan(), {"test", "test", 7}, folder_.file("whole.h5"));
    return folder_.file("whole.h5");
  }

  static void write(const Plan& plan, const CorpusHeader& header, const std::string& path) {
    static std::map<std::string, GoldenCase> known;
    CorpusWriter writer(path, header);
    for (const PlannedCase& planned : plan.cases) {
      std::vector<DroppedProfile> dropped;
      if (known.count(planned.slug) == 0) known.emplace(planned.slug, make_golden(planned, dropped));
      writer.add(known.at(planned.slug));
    }
    writer.finish();
  }

  // A master by hand: one shard under a name and with a digest, and its first case linked to.
  std::string craft(const std::string& file, const std::string& digest, const std::string& link_file,
                    const std::string& link_object) {
    const CorpusReader shard(folder_.file("shard1.h5"));
    std::string path = folder_.file("crafted.h5");
    Hdf5Output out(path);
    const std::uint32_t version = shard.info().format_version < 4 ? 4 : shard.info().format_version;
    out.write_text("", schema::attribute::format, schema::format_name);
    out.write_numbers("", schema::attribute::format_version, StoredType::uint32, std::as_bytes(std::span(&version, 1)));
    out.write_text("", schema::attribute::generator_version, shard.info().generator_version);
    out.write_text("", schema::attribute::suite, shard.info().suite);
    out.write_numbers("", schema::attribute::seed, StoredType::uint64, std::as_bytes(std::span(&shard.info().seed, 1)));
    out.write_text("", schema::attribute::digest, shard.info().digest);
    for (const char* group : {"shards", "shards/0001", "contracts", "cases"}) out.create_group(group);
    out.write_text("shards/0001", schema::attribute::file, file);
    out.write_text("shards/0001", schema::attribute::digest, digest);
    for (const DigestEntry& entry : shard.contents().contracts)
      out.link_external("contracts/" + entry.name, link_file, "/contracts/" + entry.name);
    std::vector<std::string> groups;
    for (const std::string& slug : shard.slugs()) {
      for (std::size_t slash = slug.find('/'); slash != std::string::npos; slash = slug.find('/', slash + 1)) {
        const std::string group = "cases/" + slug.substr(0, slash);
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
          out.create_group(group);
          groups.push_back(group);
        }
      }
      out.link_external("cases/" + slug, link_file, link_object.empty() ? "/cases/" + slug : link_object);
    }
    out.close();
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Master, SaysTheSameAsOneFileInTheSameOrder) {
  const CorpusReader whole(make_whole());
  for (const std::uint32_t count : {1U, 2U, 3U, 7U}) {
    const JoinReport report = join_corpora(make_shards(count), folder_.file("master.h5"));
    EXPECT_EQ(report.cases, 6U);
    EXPECT_EQ(report.digest, whole.info().digest) << count;
    const CorpusReader master(folder_.file("master.h5"));
    EXPECT_EQ(master.info().digest, whole.info().digest);
    EXPECT_EQ(master.info().shards.size(), count);
    EXPECT_EQ(master.slugs(), whole.slugs());
    for (const std::string& slug : whole.slugs()) {
      EXPECT_EQ(master.read(slug).digest, whole.read(slug).digest);
      EXPECT_EQ(master.outline(slug).family, "gaussian");
    }
    EXPECT_THROW(master.read("no/such/case"), InputError);
    EXPECT_NO_THROW(check_untrusted_corpus(folder_.file("master.h5")));
  }
}

TEST_F(Master, TakesWhatIsGeneratedByShards) {
  const Plan plan = small_plan();
  std::vector<std::string> paths;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    GenerateOptions options;
    options.generator_version = "test";
    options.shard = shard_text({i, 3});
    options.plan_digest = plan_digest(plan);
    paths.push_back(folder_.file("generated" + std::to_string(i) + ".h5"));
    generate_corpus(cut_plan(plan, {i, 3}), paths.back(), options);
  }
  EXPECT_EQ(join_corpora(paths, folder_.file("master.h5")).digest, CorpusReader(make_whole()).info().digest);
}

TEST_F(Master, DoesNotDependOnTheOrderInWhichTheFilesAreNamed) {
  std::vector<std::string> shards = make_shards(3);
  join_corpora(shards, folder_.file("a.h5"));
  std::reverse(shards.begin(), shards.end());
  join_corpora(shards, folder_.file("b.h5"));
  EXPECT_TRUE(file_bytes(folder_.file("a.h5")) == file_bytes(folder_.file("b.h5")));
}

TEST_F(Master, IsReadWhereverItsFolderMoves) {
  join_corpora(make_shards(2), folder_.file("master.h5"));
  fs::create_directory(folder_.file("new"));
  for (const char* name : {"master.h5", "shard1.h5", "shard2.h5"})
    fs::rename(folder_.file(name), folder_.file(std::string("new/") + name));
  EXPECT_EQ(reading_fault(folder_.file("new/master.h5")), "none");
  // Beside a link to the master nothing is looked for.
  fs::create_symlink(folder_.file("new/master.h5"), folder_.file("link.h5"));
  EXPECT_EQ(reading_fault(folder_.file("link.h5")), "none");
}

TEST_F(Master, MissingChangedAndReplacedShardsAreRefused) {
  join_corpora(make_shards(2), folder_.file("master.h5"));
  const std::string master = folder_.file("master.h5"), shard = folder_.file("shard2.h5");
  EXPECT_EQ(reading_fault(master), "none");
  fs::rename(shard, folder_.file("away.h5"));
  EXPECT_FAULT(reading_fault(master), "shard2.h5: cannot be opened");
  fs::create_symlink(folder_.file("away.h5"), shard);
  EXPECT_FAULT(reading_fault(master), "is a symbolic link");
  fs::remove(shard);
  fs::create_directory(shard);
  EXPECT_FAULT(reading_fault(master), "is no regular file");
  fs::remove(shard);
  fs::copy_file(folder_.file("shard1.h5"), shard);
  EXPECT_FAULT(reading_fault(master), "was changed after it was joined");
  fs::remove(shard);
  fs::rename(folder_.file("away.h5"), shard);
  EXPECT_EQ(reading_fault(master), "none");
  // Evidence that was changed in place is found by the digest of its case.
  std::string bytes = file_bytes(shard);
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(shard, bytes);
  EXPECT_THROW(check_untrusted_corpus(master), InputError);
}

TEST_F(Master, NamesOutsideItsFolderAreRefused) {
  make_shards(1);
  const std::string digest = CorpusReader(folder_.file("shard1.h5")).info().digest;
  EXPECT_EQ(reading_fault(craft("shard1.h5", digest, "shard1.h5", "")), "none");  // control
  const std::string up = "../" + fs::path(folder_.file("")).parent_path().filename().string() + "/shard1.h5";
  for (const std::string& name : {up, folder_.file("shard1.h5"), std::string("./shard1.h5"), std::string(".."),
                                  std::string("."), std::string("x/../shard1.h5")})
    EXPECT_FAULT(reading_fault(craft(name, digest, name, "")), "is no name of a file beside the master");
}

TEST_F(Master, CyclesAndMastersOfMastersAreRefused) {
  make_shards(1);
  const std::string digest = CorpusReader(folder_.file("shard1.h5")).info().digest;
  EXPECT_FAULT(reading_fault(craft("crafted.h5", digest, "crafted.h5", "")), "is a master file");
  fs::rename(folder_.file("crafted.h5"), folder_.file("inner.h5"));
  EXPECT_FAULT(reading_fault(craft("inner.h5", digest, "inner.h5", "")), "is a master file");
}

TEST_F(Master, LinksSayTheSameAsTheShards) {
  make_shards(1);
  const std::string digest = CorpusReader(folder_.file("shard1.h5")).info().digest;
  EXPECT_FAULT(reading_fault(craft("shard1.h5", digest, "other.h5", "")), "links to something else");
  EXPECT_FAULT(reading_fault(craft("shard1.h5", digest, "shard1.h5", "/cases")), "links to something else");
  EXPECT_FAULT(reading_fault(craft("shard1.h5", std::string(64, '0'), "shard1.h5", "")), "was changed after");
}

TEST_F(Master, MissingAndAdditionalLinksAreRefused) {
  const std::vector<std::string> shards = make_shards(2);
  join_corpora(shards, folder_.file("master.h5"));
  const std::string digest = CorpusReader(folder_.file("shard2.h5")).info().digest;
  // Shard 1 is linked to, but shard 2 is named.
  EXPECT_FAULT(reading_fault(craft("shard2.h5", digest, "shard1.h5", "")), "crafted.h5: /");
  const std::string path = craft("shard1.h5", CorpusReader(shards[0]).info().digest, "shard1.h5", "");
  EXPECT_EQ(reading_fault(path), "none");
}

// Whatever byte is changed: the master is refused, or says the same.
TEST_F(Master, MutatedBytesNeverChangeWhatItSays) {
  const JoinReport report = join_corpora(make_shards(2), folder_.file("master.h5"));
  const std::string good = file_bytes(folder_.file("master.h5")), path = folder_.file("mutated.h5");
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string bytes = good;
    bytes[(i * 7919 + 13) % bytes.size()] ^= static_cast<char>(1U << (i % 8));
    write_bytes(path, bytes);
    try {
      check_untrusted_corpus(path);
      EXPECT_EQ(CorpusReader(path).info().digest, report.digest) << i;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

// What is no master holds no link.
TEST_F(Master, LinksInAnOrdinaryFileAreRefused) {
  const std::string shard = make_shards(1)[0];
  const CorpusReader reader(shard);
  const std::string path = folder_.file("linked.h5");
  {
    Hdf5Output out(path);
    const std::uint32_t version = 1;
    const std::uint64_t seed = 7;
    out.write_text("", schema::attribute::format, schema::format_name);
    out.write_numbers("", schema::attribute::format_version, StoredType::uint32, std::as_bytes(std::span(&version, 1)));
    out.write_text("", schema::attribute::generator_version, "test");
    out.write_text("", schema::attribute::suite, "test");
    out.write_numbers("", schema::attribute::seed, StoredType::uint64, std::as_bytes(std::span(&seed, 1)));
    out.write_text("", schema::attribute::digest, reader.info().digest);
    out.create_group("cases");
    out.create_group("contracts");
    out.link_external("contracts/plain_sdpa", "shard1.h5", "/contracts/plain_sdpa");
    out.close();
  }
  EXPECT_FAULT(reading_fault(path), "is a soft or external link");
}

TEST_F(Master, JoinsOnlyWhatBelongsTogether) {
  const std::vector<std::string> shards = make_shards(2);
  const std::string master = folder_.file("master.h5");
  const auto refusal = [&](const std::vector<std::string>& paths) {
    const std::string found = fault([&] { join_corpora(paths, master); });
    EXPECT_FALSE(fs::exists(master));
    return found;
  };
  EXPECT_FAULT(refusal({shards[0]}), "shard 2/2 is missing");
  EXPECT_FAULT(refusal({shards[0], shards[0], shards[1]}), "is given twice");
  EXPECT_FAULT(refusal({}), "0 files to join");
  EXPECT_FAULT(refusal({shards[0], master}), "would be replaced by its own master");
  EXPECT_FAULT(refusal({shards[0], folder_.file("no.h5")}), "cannot be opened");
  EXPECT_FAULT(refusal({shards[0], make_whole()}), "plan is");
  fs::create_directory(folder_.file("elsewhere"));
  fs::copy_file(shards[1], folder_.file("elsewhere/shard2.h5"));
  EXPECT_FAULT(refusal({shards[0], folder_.file("elsewhere/shard2.h5")}), "must lie in the folder");
  fs::create_symlink(shards[1], folder_.file("link.h5"));
  EXPECT_FAULT(refusal({shards[0], folder_.file("link.h5")}), "is a symbolic link");
  fs::remove(folder_.file("link.h5"));
  join_corpora(shards, folder_.file("inner.h5"));
  EXPECT_FAULT(refusal({folder_.file("inner.h5")}), "is a master file");
  make_shards(2, 8);  // another seed
  fs::rename(shards[0], folder_.file("other.h5"));
  make_shards(2);
  EXPECT_FAULT(refusal({folder_.file("other.h5"), shards[1]}), "seed is");
}

TEST_F(Master, JoinsSeveralSuitesOnlyIfThatIsAskedFor) {
  Plan one = small_plan(), two = small_plan();
  one.cases.resize(2);
  two.cases.erase(two.cases.begin(), two.cases.begin() + 2);
  const std::string a = folder_.file("a.h5"), b = folder_.file("b.h5"), master = folder_.file("master.h5");
  write(one, {"first", "test", 7}, a);
  write(two, {"second", "test", 8}, b);
  EXPECT_FAULT(fault([&] { join_corpora({a, b}, master); }), "suite is");
  EXPECT_EQ(join_corpora({b, a}, master, JoinOf::several_suites).cases, small_plan().cases.size());
  const CorpusReader joined(master);
  EXPECT_EQ(joined.info().suite, "first+second");
  EXPECT_EQ(joined.info().seed, 0u);
  EXPECT_EQ(joined.slugs().size(), small_plan().cases.size());
  EXPECT_EQ(joined.read(two.cases[0].slug).input.slug, two.cases[0].slug);
  write(two, {"third", "test", 8}, b);  // not the suite that was joined
  EXPECT_NE(reading_fault(master), "none");
  const std::vector<std::string> shards = make_shards(2);
  EXPECT_FAULT(fault([&] { join_corpora({a, shards[0]}, folder_.file("m.h5"), JoinOf::several_suites); }), "is shard");
}

TEST_F(Master, JoinsFilesThatAreNoShardsIfTheyDoNotContradict) {
  std::vector<GoldenCase> one = {sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6")};
  std::vector<GoldenCase> two = {sample_golden("qwen3_rmsnorm", "gaussian", Format::bfloat16, "1,2,1,3,4,8,6")};
  const std::string a = write_corpus(folder_, "a.h5", one), b = write_corpus(folder_, "b.h5", two);
  std::vector<GoldenCase> both = one;
  both.push_back(two[0]);
  EXPECT_EQ(join_corpora({a, b}, folder_.file("master.h5")).digest,
            CorpusReader(write_corpus(folder_, "both.h5", both)).info().digest);
  EXPECT_FAULT(fault([&] { join_corpora({a, folder_.file("both.h5")}, folder_.file("m.h5")); }), "stands in");
  two[0].input.contract.name = "plain_sdpa";  // another contract under that name
  EXPECT_FAULT(fault([&] {
                 join_corpora({a, write_corpus(folder_, "c.h5", two)}, folder_.file("m.h5"));
               }),
               "contract plain_sdpa is another one in");
  two[0].input.contract.name = "qwen3_rmsnorm";
  two[0].input.slug = one[0].input.slug + "/inner";
  EXPECT_FAULT(fault([&] {
                 join_corpora({a, write_corpus(folder_, "c.h5", two)}, folder_.file("m.h5"));
               }),
               "lies inside");
}

}  // namespace
}  // namespace qkcts

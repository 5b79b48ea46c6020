// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "conformance/file.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

GoldenCase small_case() {
  return sample_golden("clause_kv_lengths", "padded", Format::binary32, "2,2,1,3,4,8,6");
}

TEST(CorpusWriter, EqualCallsGiveEqualBytes) {
  const TemporaryFolder folder;
  const std::vector<GoldenCase> cases = {small_case(),
                                         sample_golden("plain_sdpa", "gaussian", Format::bfloat16, "1,2,1,40,50,32,9")};
  const std::string first = file_bytes(write_corpus(folder, "a.h5", cases));
  EXPECT_GT(first.size(), 100000U);
  EXPECT_TRUE(first == file_bytes(write_corpus(folder, "b.h5", cases)));
}

TEST(CorpusWriter, WithoutFinishTheOldFileStandsAndNothingElse) {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.h5"), "old");
  {
    GoldenCase golden = small_case();
    CorpusWriter writer(folder.file("a.h5"), {"test", "test", 1});
    writer.add(golden);
    EXPECT_EQ(folder.file_count(), 2U);
  }
  EXPECT_EQ(file_bytes(folder.file("a.h5")), "old");
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(CorpusWriter, FinishReplacesTheOldFile) {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.h5"), "old");
  GoldenCase golden = small_case();
  CorpusWriter writer(folder.file("a.h5"), {"test", "test", 1});
  writer.add(golden);
  const std::string digest = writer.finish();
  EXPECT_EQ(folder.file_count(), 1U);
  EXPECT_EQ(CorpusReader(folder.file("a.h5")).info().digest, digest);
}

TEST(CorpusWriter, RefusesSlugsThatAreNoneOrExist) {
  const TemporaryFolder folder;
  CorpusWriter writer(folder.file("a.h5"), {"test", "test", 1});
  GoldenCase golden = small_case();
  golden.input.slug = "a/b";
  writer.add(golden);
  EXPECT_THROW(writer.add(golden), InputError);
  golden.input.slug = "a";
  EXPECT_THROW(writer.add(golden), InputError);
  golden.input.slug = "a/b/c";
  EXPECT_THROW(writer.add(golden), InputError);
  golden.input.slug = "Not a slug";
  EXPECT_THROW(writer.add(golden), InputError);
  golden.input.slug = "a/c";
  golden.input.contract.terms.k_norm.eps *= 2;  // another contract of the same name
  EXPECT_THROW(writer.add(golden), InputError);
}

TEST(CorpusWriter, WhereItCannotWriteItSaysSo) {
  const TemporaryFolder folder;
  EXPECT_THROW(CorpusWriter(folder.file("no/such/folder.h5"), {"test", "test", 1}), WriteError);
  EXPECT_THROW(CorpusWriter(folder.file(""), {"test", "test", 1}), WriteError);
}

enum ChildResult { write_error = 40, no_error, other_error };

// Runs in a child, since the limit on file size cannot be lifted again.
int write_with_limit(const std::string& path, const std::vector<GoldenCase>& cases, rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  try {
    CorpusWriter writer(path, {"test", "test generator", 7});  // as write_corpus does
    for (GoldenCase golden : cases) writer.add(golden);
    writer.finish();
  } catch (const WriteError&) {
    return write_error;
  } catch (...) {
    return other_error;
  }
  return no_error;
}

TEST(CorpusWriter, AFullMediumIsAWriteErrorAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::vector<GoldenCase> cases = {sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,40,50,32,9"),
                                         small_case()};
  const std::size_t needed = file_bytes(write_corpus(folder, "whole.h5", cases)).size();
  write_bytes(folder.file("a.h5"), "old");
  for (std::size_t eighth = 0; eighth <= 8; ++eighth) {
    const std::size_t limit = eighth == 8 ? needed - 1 : needed * eighth / 8;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(write_with_limit(folder.file("a.h5"), cases, limit));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "limit " << limit << ", signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), write_error) << "limit " << limit << " of " << needed;
    EXPECT_TRUE(file_bytes(folder.file("a.h5")) == "old") << "limit " << limit;
    EXPECT_EQ(folder.file_count(), 2U) << "limit " << limit;
  }
  const pid_t child = ::fork();  // control: the limit alone changes nothing
  if (child == 0) ::_exit(write_with_limit(folder.file("a.h5"), cases, needed));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), no_error);
  EXPECT_EQ(file_bytes(folder.file("a.h5")).size(), needed);
}

}  // namespace
}  // namespace qkcts

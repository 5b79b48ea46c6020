// SPDX-License-Identifier: Apache-2.0
#include "conformance/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "conformance/contract.hpp"
#include "conformance/growing_file.hpp"
#include "conformance/json_in_parts.hpp"

namespace qkcts {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string path = folder / "a.json";
  write_file_atomically(path, std::string("x\0y\n", 4));
  EXPECT_EQ(read_text_file(path), std::string("x\0y\n", 4));
  write_file_atomically(path, "");
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_EQ(entries(), 1U) << "no temporary file stays behind";
}

TEST_F(FileTest, ReadingNamesThePath) {
  EXPECT_THROW(read_text_file(folder / "absent"), InputError);
  EXPECT_THROW(read_text_file(folder), InputError) << "a folder is no file";
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_text_file(pipe), InputError) << "and does not wait for a writer";
  try {
    read_text_file(folder / "absent");
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("absent: cannot be opened: No such file"), std::string::npos);
  }
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFile) {
  const std::string path = folder / "target";
  std::filesystem::create_directories(path + "/inside");  // a folder cannot be replaced by rename
  EXPECT_THROW(write_file_atomically(path, "new"), WriteError);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(entries(), 1U) << "no temporary file stays behind";
  EXPECT_THROW(write_file_atomically(folder / "absent" / "file", "new"), WriteError);
}

// As by a second Ctrl-C while a report is written.
TEST_F(FileTest, AKilledWriterLeavesNothing) {
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless < 0) GTEST_SKIP() << "no file without a name in this file system";
  ::close(nameless);
  const std::string path = folder / "report";
  write_file_atomically(path, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    write_file_atomically(path, [](const TextSink& sink) {
      sink(std::string(1 << 20, 'x'));
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(entries(), 1U);
}

// What a killed process of the same number left is no obstacle.
TEST_F(FileTest, ATemporaryNameThatIsTakenIsNoObstacle) {
  const std::string path = folder / "report";
  write_file_atomically(path, "old");
  std::ofstream(path + ".partial." + std::to_string(::getpid())) << "rest";
  write_file_atomically(path, "new");
  EXPECT_EQ(read_text_file(path), "new");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, ANewFileHasThePermissionsOfAnyOther) {
  const ::mode_t before = ::umask(0027);
  const std::string path = folder / "report";
  for (const char* text : {"new", "replaced"}) {
    write_file_atomically(path, text);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0640U) << text;
  }
  ::umask(before);
}

TEST_F(FileTest, APieceByPieceReaderSeesTheFileThatItOpened) {
  const std::string path = folder / "long";
  const std::string text = std::string(200000, 'a') + "\n" + std::string(3, 'b');
  write_file_atomically(path, text);
  const std::unique_ptr<std::istream> file = open_text_file(path, text.size());
  std::filesystem::remove(path);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(*file), {}), text);
    file->clear();
    file->seekg(0);
  }
}

TEST_F(FileTest, AFileThatGrowsIsNotReadBeyondItsLimit) {
  const std::string path = folder / "growing";
  write_file_atomically(path, "12345");
  const std::unique_ptr<std::istream> file = open_text_file(path, 5);
  std::ofstream(path, std::ios::app) << "6";
  EXPECT_THROW(file->rdbuf()->sgetc(), InputError);
}

// Its first page cannot be read.
TEST_F(FileTest, AnErrorOfReadingSaysSo) {
  for (const auto& read : {std::function<void()>([] { open_text_file("/proc/self/mem", 9)->rdbuf()->sgetc(); }),
                           std::function<void()>([] { parse_json_file_in_parts("/proc/self/mem", 9, "", {}); })}) {
    try {
      read();
      ADD_FAILURE() << "it was read";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("/proc/self/mem: cannot be read: "), std::string::npos) << error.what();
    }
  }
}

TEST_F(FileTest, APipeIsNotReplaced) {
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomically(path, "new"), WriteError);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/certificate_archive.hpp"

#include <cerrno>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace qkcts::cli {
namespace {

// Silent: that it cannot be done is no error.
bool succeeds(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string archive_path(const std::string& folder) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::weakly_canonical(folder, error);
  if (!whole.has_filename()) whole = whole.parent_path();  // of "certificate/", while it is not there
  return whole.string() + ".tar.zst";
}

std::string archive_certificate(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  std::string archive = archive_path(folder);
  if (succeeds({"tar", "--zstd", "--sort=name", "--owner=0", "--group=0", "-cf", archive, "-C",
                whole.parent_path().string(), "--", whole.filename().string()}))
    return archive;
  fs::remove(archive, error);
  return {};
}

}  // namespace qkcts::cli

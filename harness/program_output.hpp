// SPDX-License-Identifier: Apache-2.0
// The program as its user starts it: arguments in, exit code and both texts out. Tests of commands derive from
// ProgramTest; each suite has a folder of its own, gone when the suite ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include "conformance/file.hpp"
#include "conformance/json_schema.hpp"

namespace qkcts {

struct ProgramOutput {
  int code = -1;  // the exit code; -1: ended by a signal
  std::string out, err;
};

inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

class ProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = "/var/tmp/qkcts_program_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder); }

  // `arguments` as a shell reads them, after the assignments in `environment`.
  static ProgramOutput qkcts(const std::string& arguments, const std::string& environment = "",
                             const std::string& program = QKCTS_PROGRAM) {
    const std::string command =
        environment + " " + program + " " + arguments + " >" + path("out") + " 2>" + path("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(path("out")), read_text_file(path("err"))};
  }
  static std::string path(const std::string& name) { return folder + "/" + name; }
  // The path of a new file in the folder.
  static std::string written(const std::string& name, const std::string& text) {
    write_file_atomically(path(name), text);
    return path(name);
  }

  // run.json in this folder of reports, without what differs from run to run.
  static Json findings(const std::string& reports) {
    Json record = parse_json(read_text_file(path(reports + "/run.json")), "run.json");
    require_schema(record, "run", "run.json");
    for (const char* key : {"seconds", "started", "command"}) record.erase(key);
    for (Json& one : record["cases"]) one.erase("seconds");
    record["machine"].erase("worker_memory_mib");  // a share, with --jobs
    return record;
  }

  static inline std::string folder;
};

}  // namespace qkcts

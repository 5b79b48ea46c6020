// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstring>
#include <exception>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "harness/adapter_error.hpp"
#include "harness/cli/commands.hpp"
#include "harness/run_session.hpp"
#include "harness/utf8_text.hpp"
#include "harness/worker.hpp"

namespace {

// What an adapter or a file has to say may hold anything; it becomes one printable line.
int report(const std::exception& error, int code) {
  std::fprintf(stderr, "qkcts: %s\n", qkcts::utf8_line(error.what()).c_str());
  return code;
}

int run_command(const qkcts::cli::Command& command) {
  try {
    return command();
  } catch (const qkcts::InputError& error) {
    return report(error, 3);
  } catch (const qkcts::UsageError& error) {
    return report(error, 2);
  } catch (const qkcts::AdapterError& error) {
    return report(error, 4);
  } catch (const qkcts::WriteError& error) {
    return report(error, 6);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qkcts: internal error: %s\n", error.what());
    return 6;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Not a command of the user's: the program starts itself as a worker.
  if (argc == 2 && std::strcmp(argv[1], qkcts::worker_argument) == 0) return qkcts::worker_main();
  CLI::App app{"Conformance tests for QK-normalised attention kernels, judged against proven golden vectors", "qkcts"};
  app.require_subcommand(1);
  app.set_version_flag("--version", QKCTS_VERSION);
  qkcts::cli::Command command;
  qkcts::cli::add_contract(app, command);
  qkcts::cli::add_generate(app, command);
  qkcts::cli::add_verify(app, command);
  qkcts::cli::add_inspect(app, command);
  qkcts::cli::add_adapters(app, command);
  qkcts::cli::add_describe(app, command);
  qkcts::cli::add_run(app, command);
  qkcts::cli::add_explain(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run_command(command);
}

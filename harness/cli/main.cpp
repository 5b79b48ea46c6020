// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "harness/adapter_error.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/help_formatter.hpp"
#include "harness/run_lanes.hpp"
#include "harness/usage_error.hpp"
#include "harness/utf8_text.hpp"
#include "harness/worker.hpp"

namespace {

// What an adapter or a file has to say may hold anything; it becomes one printable line.
int report(const std::exception& error, int code) {
  std::fprintf(stderr, "qkcts: %s\n", qkcts::utf8_line(error.what()).c_str());
  return code;
}

// The deepest command that was recognised, as it is typed: "qkcts contract show".
const CLI::App& recognised(const CLI::App& app, std::string& words) {
  const std::vector<const CLI::App*> below = app.get_subcommands([](const CLI::App* sub) { return sub->parsed(); });
  words += (words.empty() ? "" : " ") + app.get_name();
  return below.empty() ? app : recognised(*below.front(), words);
}

// One line: what is wrong with the command line, and what to do.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string words;
  const CLI::App& command = recognised(app, words);
  std::string commands;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    commands += (commands.empty() ? "" : ", ") + sub->get_name();
  std::string what = error.what();
  if (!commands.empty()) {
    const std::vector<std::string> rest = command.remaining();
    what = rest.empty() ? "a command is missing" : "'" + rest.front() + "' is no command or option here";
    what += "; there are: " + commands;
  }
  std::fprintf(stderr, "qkcts: %s; see `%s --help`\n", qkcts::utf8_line(what).c_str(), words.c_str());
  return 2;
}

// What was printed may still be in a buffer, and a full disk shows only now.
int printed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "qkcts: the standard output cannot be written: what it holds is not whole\n");
  return 6;
}

int run_command(const qkcts::cli::Command& command) {
  try {
    return printed(command());
  } catch (const qkcts::InputError& error) {
    return report(error, 3);
  } catch (const qkcts::UsageError& error) {
    return report(error, 2);
  } catch (const qkcts::AdapterError& error) {
    return report(error, 4);
  } catch (const qkcts::WriteError& error) {
    return report(error, 6);
  } catch (const qkcts::LaneError& error) {
    return report(error, 6);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return printed(6);
    std::fprintf(stderr, "qkcts: internal error: %s\n", error.what());
    return 6;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qkcts: internal error: %s\n", error.what());
    return 6;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Not a command of the user's: the program starts itself as a worker.
  if (argc == 2 && std::strcmp(argv[1], qkcts::worker_argument) == 0) return qkcts::worker_main();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of write() like any other
  CLI::App app{"Conformance tests for QK-normalised attention kernels, judged against proven golden vectors", "qkcts"};
  qkcts::cli::format_help(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", QKCTS_VERSION);
  qkcts::cli::Command command;
  qkcts::cli::add_contract(app, command);
#ifdef QKCTS_REFERENCE
  qkcts::cli::add_generate(app, command);
  qkcts::cli::add_verify(app, command);
  qkcts::cli::add_inspect(app, command);
#endif
  qkcts::cli::add_vectors(app, command);
  qkcts::cli::add_adapters(app, command);
  qkcts::cli::add_describe(app, command);
  qkcts::cli::add_run(app, command);
  qkcts::cli::add_export(app, command);
  qkcts::cli::add_answer(app, command);
  qkcts::cli::add_check(app, command);
  qkcts::cli::add_gate(app, command);
  qkcts::cli::add_baseline(app, command);
  qkcts::cli::add_certify(app, command);
  qkcts::cli::add_verify_certificate(app, command);
  qkcts::cli::add_report(app, command);
  qkcts::cli::add_bench(app, command);
#ifdef QKCTS_REFERENCE
  qkcts::cli::add_explain(app, command);
  qkcts::cli::add_diagnose(app, command);
  qkcts::cli::add_adequacy(app, command);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? printed(app.exit(error)) : report_usage(app, error);
  } catch (const qkcts::UsageError& error) {
    return report(error, 2);
  }
  return run_command(command);
}

// SPDX-License-Identifier: Apache-2.0
// The subcommands of `qkcts`. Each add_X registers one; its callback stores what main() is to run.
//
// To add a command: a file x.cpp with add_x here, one line in main.cpp, one in harness/CMakeLists.txt, a row in
// harness/README.md, and an example in its footer.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace qkcts::cli {

// Returns the exit code. May throw InputError (exit 3), AdapterError (4), WriteError (6); anything else is exit 6.
using Command = std::function<int()>;

// In the order in which --help lists them.
void add_contract(CLI::App& app, Command& command);
void add_generate(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_inspect(CLI::App& app, Command& command);
void add_vectors(CLI::App& app, Command& command);
void add_adapters(CLI::App& app, Command& command);
void add_describe(CLI::App& app, Command& command);
void add_run(CLI::App& app, Command& command);
void add_export(CLI::App& app, Command& command);
void add_answer(CLI::App& app, Command& command);
void add_check(CLI::App& app, Command& command);
void add_gate(CLI::App& app, Command& command);
void add_baseline(CLI::App& app, Command& command);
void add_certify(CLI::App& app, Command& command);
void add_verify_certificate(CLI::App& app, Command& command);
void add_report(CLI::App& app, Command& command);
void add_bench(CLI::App& app, Command& command);
void add_explain(CLI::App& app, Command& command);
void add_diagnose(CLI::App& app, Command& command);
void add_adequacy(CLI::App& app, Command& command);

}  // namespace qkcts::cli

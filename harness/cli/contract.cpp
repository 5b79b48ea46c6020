// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "conformance/contract.hpp"
#include "harness/cli/commands.hpp"

namespace qkcts::cli {

void add_contract(CLI::App& app, Command& command) {
  CLI::App* contract = app.add_subcommand("contract", "List, show, validate and compare contracts");
  contract->add_subcommand("list", "Names of the shipped contracts")->callback([&command] {
    command = [] {
      for (const std::string& name : shipped_contracts()) std::printf("%s\n", name.c_str());
      return 0;
    };
  });
}

}  // namespace qkcts::cli

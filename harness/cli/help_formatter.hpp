// SPDX-License-Identifier: Apache-2.0
// --help of every command in 80 columns.
#pragma once

namespace CLI {
class App;
}

namespace qkcts::cli {

// Of the command and of those that are added to it afterwards.
void format_help(CLI::App& app);

}  // namespace qkcts::cli

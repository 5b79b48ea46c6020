// SPDX-License-Identifier: Apache-2.0
// The command of `cmd:...` as words.
#pragma once

#include <string>
#include <vector>

namespace qkcts {

// Blanks part words; 'single' and "double" quotes and a backslash keep what they hold as it is. Nothing is expanded:
// no shell is asked. Throws AdapterError for an open quote or no word at all; `given` names the command.
std::vector<std::string> command_words(const std::string& command, const std::string& given);

// Where the program of that name is: itself if it holds a slash, else by PATH. Throws AdapterError.
std::string program_path(const std::string& name, const std::string& given);

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// What was judged, as one SHA-256.
#pragma once

#include <string>

#include "harness/adapter_runner.hpp"

namespace qkcts {

// Of the library or the file of results: that of its bytes. Of a command: over its words, each followed by the digest
// of the file that it names ("" for a word that names none), the program first. So another script is another adapter;
// what a script loads by itself is not seen.
std::string adapter_digest(const AdapterSpec& spec);

}  // namespace qkcts

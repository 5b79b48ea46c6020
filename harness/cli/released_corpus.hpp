// SPDX-License-Identifier: Apache-2.0
// Corpora of released suites by name: `run --suite smoke`.
#pragma once

#include <string>

#include "vectors/manifest.hpp"

namespace qkcts::cli {

// Throws UsageError naming the suites that there are.
ReleasedSuite suite_from_argument(const std::string& name);

// NAME.h5 in the folder that QKCTS_CORPORA names, or beside this program, which carries smoke. Empty if it is in
// neither. That it is the released one is for its reader to see: its digest is that of the manifest.
std::string released_corpus_path(const ReleasedSuite& suite);
// The same, or an InputError that says how to make it.
std::string require_released_corpus(const ReleasedSuite& suite);

}  // namespace qkcts::cli

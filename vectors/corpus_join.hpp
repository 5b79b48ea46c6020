// SPDX-License-Identifier: Apache-2.0
// Writing a master file for the files of the shards of one plan, or of several corpora of one suite.
#pragma once

#include <string>
#include <vector>

namespace qkcts {

struct JoinReport {
  std::size_t cases = 0;
  std::string digest;  // that of one file with all these cases
};

enum class JoinOf {
  one_suite,       // shards of a plan, or corpora of one suite and seed
  several_suites,  // whole corpora: the master is called "core+edge", and its seed is 0
};

// The files lie in the folder of the master. Throws InputError if they do not, contradict one another, or are shards of
// a plan of which others are missing; WriteError as CorpusWriter does. The file does not depend on the order of paths.
JoinReport join_corpora(std::vector<std::string> paths, const std::string& master, JoinOf kind = JoinOf::one_suite);

}  // namespace qkcts

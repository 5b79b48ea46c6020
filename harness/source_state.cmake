# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=FOLDER -DOUTPUT=FILE -P source_state.cmake: what git says of the tree, as C++. The file is touched only
# when that changes.
set(commit "")
set(tree "")
set(changes -1)
find_program(git git)
if(git)
  execute_process(COMMAND "${git}" -C "${SOURCE}" rev-parse HEAD OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit "${found}")
    execute_process(COMMAND "${git}" -C "${SOURCE}" rev-parse "HEAD^{tree}" OUTPUT_VARIABLE tree
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND "${git}" --no-optional-locks -C "${SOURCE}" status --porcelain OUTPUT_VARIABLE status ERROR_QUIET
      RESULT_VARIABLE failed)
    if(NOT failed)
      string(REGEX MATCHALL "\n" lines "${status}")
      list(LENGTH lines changes)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[// Made by harness/source_state.cmake.
#include "harness/source_state.hpp"

namespace qkcts {

std::string source_commit() {
  return "@commit@";
}

std::string source_tree() {
  return "@tree@";
}

int source_changes() {
  return @changes@;
}

}  // namespace qkcts
]])

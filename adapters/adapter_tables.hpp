// SPDX-License-Identifier: Apache-2.0
// The tables of the bundled adapters, linked into the tests. Each entry file is compiled once more with its exported
// symbol renamed, since a program can hold only one `qkcts_adapter`.
#pragma once

#include <vector>

#include <qkcts/adapter.h>

extern "C" const qkcts_adapter_table* qkcts_adapter_template(void);
extern "C" const qkcts_adapter_table* qkcts_adapter_scalar(void);
extern "C" const qkcts_adapter_table* qkcts_adapter_mutants(void);
#ifdef QKCTS_AVX2_BUILT
extern "C" const qkcts_adapter_table* qkcts_adapter_avx2(void);
#endif

namespace qkcts {

struct NamedTable {
  const char* name;
  const qkcts_adapter_table* table;
};

inline std::vector<NamedTable> bundled_tables() {
  return {
      {"template", qkcts_adapter_template()},
      {"scalar", qkcts_adapter_scalar()},
      {"mutants", qkcts_adapter_mutants()},
#ifdef QKCTS_AVX2_BUILT
      {"avx2", qkcts_adapter_avx2()},
#endif
  };
}

}  // namespace qkcts

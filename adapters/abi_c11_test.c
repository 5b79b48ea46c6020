/* SPDX-License-Identifier: Apache-2.0
 * The headers as C11: compiling this file is half of the test, abi_test.cpp compares the sizes with those of C++. */
#include <qkcts/adapter.h>

#include <stddef.h>

size_t qkcts_c11_sizes(size_t which);

size_t qkcts_c11_sizes(size_t which) {
  const size_t sizes[] = {sizeof(qkcts_contract), sizeof(qkcts_shape),         sizeof(qkcts_tensor),
                          sizeof(qkcts_inputs),   sizeof(qkcts_outputs),       sizeof(qkcts_text),
                          sizeof(qkcts_run_args), sizeof(qkcts_norm),          sizeof(qkcts_mask),
                          sizeof(qkcts_heads),    sizeof(qkcts_adapter_table), sizeof(qkcts_norm_range),
                          sizeof(qkcts_rotation), sizeof(qkcts_logits),        sizeof(qkcts_softmax),
                          sizeof(qkcts_regions),  sizeof(qkcts_projection),    sizeof(qkcts_vector_rounding),
                          sizeof(qkcts_rounding), sizeof(qkcts_input_rounding)};
  return which < sizeof sizes / sizeof sizes[0] ? sizes[which] : 0;
}

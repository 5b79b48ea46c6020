// SPDX-License-Identifier: Apache-2.0
// The adapter on the host executor, linked into tests; its symbol is renamed, since a program can hold only one
// `qkcts_adapter`.
#pragma once

#include <stdexcept>
#include <string>

#include <qkcts/adapter.h>

extern "C" const qkcts_adapter_table* qkcts_adapter_cuda_host(void);

namespace qkcts {

// What prepare() made, for as long as this object lives.
class AdapterState {
 public:
  AdapterState(const qkcts_adapter_table& table, const std::string& options) : table_(table) {
    char text[256] = "";
    qkcts_text message{sizeof(qkcts_text), sizeof text, 0, 0, text};
    if (table.prepare(options.c_str(), &state_, &message) != QKCTS_OK) throw std::runtime_error(text);
  }
  ~AdapterState() { table_.release(state_); }
  AdapterState(const AdapterState&) = delete;
  AdapterState& operator=(const AdapterState&) = delete;
  void* get() const { return state_; }

 private:
  const qkcts_adapter_table& table_;
  void* state_ = nullptr;
};

}  // namespace qkcts

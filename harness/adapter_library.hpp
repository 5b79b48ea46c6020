// SPDX-License-Identifier: Apache-2.0
// A loaded adapter: dlopen, the one symbol, version negotiation, and the calls around run(). Runs code of the adapter,
// so it is used in the worker, or in the host only on request.
#pragma once

#include <cstdint>
#include <string>

#include <qkcts/adapter.h>

namespace qkcts {

// What is wrong with a table by the rules of <qkcts/adapter.h>, as one line; empty if it can be used.
std::string table_fault(const qkcts_adapter_table* table);

// A returned status as a number: an adapter may return one that is no enumerator, which C++ must not look at as an
// enum.
std::uint32_t status_number(qkcts_status status);

class AdapterLibrary {
 public:
  // Throws AdapterError: no library, no symbol, another major version, missing functions.
  explicit AdapterLibrary(const std::string& path);
  ~AdapterLibrary();  // release(), and nothing else: many runtimes do not survive dlclose
  AdapterLibrary(const AdapterLibrary&) = delete;
  AdapterLibrary& operator=(const AdapterLibrary&) = delete;

  // The text of describe(). Throws AdapterError if the adapter refuses.
  std::string describe() const;
  // QKCTS_OK, or another status with the adapter's reason.
  std::uint32_t probe(std::string& reason) const;
  // QKCTS_OK, or QKCTS_UNAVAILABLE with the reason: not with these options here. Throws AdapterError with the adapter's
  // message for any other status.
  std::uint32_t prepare(const std::string& options, std::string& reason);

  const qkcts_adapter_table& table() const { return *table_; }
  void* state() const { return state_; }

 private:
  std::string path_;
  const qkcts_adapter_table* table_ = nullptr;
  void* state_ = nullptr;
  bool prepared_ = false;
};

}  // namespace qkcts

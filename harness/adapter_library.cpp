// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/adapter_error.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t longest_text = 1u << 20;

// A text buffer with what an adapter wrote into it, whatever it says about its length.
struct Text {
  explicit Text(std::uint32_t capacity) : storage(capacity) {
    text.struct_size = sizeof(qkcts_text);
    text.capacity = capacity;
    text.text = storage.data();
  }
  std::string string() const {
    return std::string(storage.data(),
                       static_cast<std::size_t>(std::find(storage.begin(), storage.end(), '\0') - storage.begin()));
  }
  std::vector<char> storage;
  qkcts_text text{};
};

}  // namespace

std::string table_fault(const qkcts_adapter_table* table) {
  if (table == nullptr) return "qkcts_adapter() returned a null pointer";
  if (table->struct_size < sizeof(std::uint32_t) * 2) {
    return fmt::format("struct_size of its table is {}, too small for a version", table->struct_size);
  }
  if (table->abi_major != QKCTS_ADAPTER_ABI_MAJOR) {
    return fmt::format("it speaks ABI version {}, this program version {}: rebuild it against this adapter.h",
                       table->abi_major, QKCTS_ADAPTER_ABI_MAJOR);
  }
  constexpr std::size_t needed = offsetof(qkcts_adapter_table, release) + sizeof(table->release);
  if (table->struct_size < needed) {
    return fmt::format("struct_size of its table is {}, version 1.0 has {} bytes", table->struct_size, needed);
  }
  if (table->describe == nullptr || table->probe == nullptr || table->prepare == nullptr || table->run == nullptr ||
      table->release == nullptr) {
    return "its table has a null function";
  }
  return {};
}

std::uint32_t status_number(qkcts_status status) {
  std::uint32_t number = 0;
  static_assert(sizeof number == sizeof status);
  std::memcpy(&number, &status, sizeof number);
  return number;
}

AdapterLibrary::AdapterLibrary(const std::string& path) : path_(path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw AdapterError(fmt::format("{}: cannot be loaded: {}", path, dlerror()));
  void* const symbol = dlsym(handle, "qkcts_adapter");
  if (symbol == nullptr) throw AdapterError(fmt::format("{}: exports no function qkcts_adapter", path));
  table_ = reinterpret_cast<const qkcts_adapter_table* (*)()>(symbol)();
  if (const std::string fault = table_fault(table_); !fault.empty())
    throw AdapterError(fmt::format("{}: {}: {}", path, verdict_name(Verdict::error_abi), fault), Verdict::error_abi);
}

AdapterLibrary::~AdapterLibrary() {
  if (prepared_) table_->release(state_);
}

std::string AdapterLibrary::describe() const {
  Text text(1u << 16);
  std::uint32_t status = status_number(table_->describe(&text.text));
  if (status == QKCTS_OK && text.text.length >= text.text.capacity) {
    if (text.text.length >= longest_text) {
      throw AdapterError(
          fmt::format("{}: describe() wants {} bytes, more than {}", path_, text.text.length, longest_text));
    }
    text = Text(text.text.length + 1);
    status = status_number(table_->describe(&text.text));
  }
  if (status != QKCTS_OK) throw AdapterError(fmt::format("{}: describe() returned status {}", path_, status));
  return text.string();
}

std::uint32_t AdapterLibrary::probe(std::string& reason) const {
  Text text(4096);
  const std::uint32_t status = status_number(table_->probe(&text.text));
  reason = text.string();
  return status;
}

std::uint32_t AdapterLibrary::prepare(const std::string& options, std::string& reason) {
  Text text(4096);
  const std::uint32_t status = status_number(table_->prepare(options.c_str(), &state_, &text.text));
  if (status == QKCTS_UNAVAILABLE) {
    reason = text.string();
    return status;
  }
  if (status != QKCTS_OK) {
    throw AdapterError(
        fmt::format("{}: prepare(\"{}\") returned status {}: {}", path_, options, status, text.string()));
  }
  prepared_ = true;
  return status;
}

}  // namespace qkcts

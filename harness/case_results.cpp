// SPDX-License-Identifier: Apache-2.0
#include "harness/case_results.hpp"

#include <utility>

#include "harness/case_bytes.hpp"

namespace qkcts {

CaseResults::CaseResults(std::initializer_list<CaseResult> results) {
  for (const CaseResult& result : results) push_back(result);
}

CaseResults::CaseResults(const CaseResults& other) {
  for (const CaseResult& result : other) push_back(result);
}

CaseResults& CaseResults::operator=(const CaseResults& other) {
  return *this = CaseResults(other);
}

CaseResult& CaseResults::operator[](std::size_t number) {
  Kept& kept = at_hand(number);
  kept.changed = true;
  return kept.result;
}

CaseResult& CaseResults::push_back(CaseResult result) {
  const std::size_t number = size();
  if (kept_.size() <= number && number < in_memory) kept_.emplace_back();
  Kept& kept = kept_[number % in_memory];
  put_aside(kept);
  put_aside_.emplace_back();
  kept = {number, std::move(result), true};
  return kept.result;
}

void CaseResults::resize(std::size_t count) {
  while (size() > count) pop_back();
  while (size() < count) emplace_back();
}

void CaseResults::clear() {
  *this = CaseResults();
}

CaseResults::Kept& CaseResults::at_hand(std::size_t number) const {
  Kept& kept = kept_[number % in_memory];
  if (kept.number == number) return kept;
  put_aside(kept);
  const std::vector<std::byte> bytes = file_.get(put_aside_[number]);
  MessageReader reader(bytes);
  kept = {number, get_case(reader), false};
  return kept;
}

void CaseResults::put_aside(const Kept& kept) const {
  if (!kept.changed || kept.number >= size()) return;
  MessageWriter writer;
  put_case(writer, kept.result);
  put_aside_[kept.number] = file_.put(writer.bytes(), put_aside_[kept.number]);
}

}  // namespace qkcts

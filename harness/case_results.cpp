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
  CaseResults copy(other);
  swap(copy);
  return *this;
}

void CaseResults::swap(CaseResults& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(file_, other.file_);
  std::swap(file_end_, other.file_end_);
  std::swap(clock_, other.clock_);
  std::swap(size_, other.size_);
}

CaseResult& CaseResults::operator[](std::size_t number) {
  std::vector<CaseResult>& cases = page(number);
  pages_[number / page_size].changed = true;
  return cases[number % page_size];
}

CaseResult& CaseResults::push_back(CaseResult result) {
  if (size_ % page_size == 0) {
    pages_.emplace_back();
    pages_.back().cases.reserve(page_size);
  }
  std::vector<CaseResult>& last = page(size_);
  pages_.back().changed = true;
  ++size_;
  last.push_back(std::move(result));
  put_aside(pages_.back());
  return last.back();
}

void CaseResults::pop_back() {
  page(size_ - 1).pop_back();
  pages_.back().changed = true;
  if (--size_ % page_size == 0) pages_.pop_back();
}

void CaseResults::resize(std::size_t count) {
  while (size_ > count) pop_back();
  while (size_ < count) emplace_back();
}

void CaseResults::clear() {
  CaseResults empty;
  swap(empty);
}

std::size_t CaseResults::cases_in_memory() const {
  std::size_t count = 0;
  for (const Page& one : pages_) count += one.cases.size();
  return count;
}

std::vector<CaseResult>& CaseResults::page(std::size_t number) const {
  Page& wanted = pages_[number / page_size];
  wanted.looked_at = ++clock_;
  if (!wanted.in_memory) {
    const std::vector<std::byte> bytes = file_.read(wanted.place, wanted.bytes);
    MessageReader reader(bytes);
    std::vector<CaseResult> cases;
    cases.reserve(page_size);
    for (std::size_t i = 0; i < wanted.count; ++i) cases.push_back(get_case(reader));
    wanted.cases = std::move(cases);
    wanted.in_memory = true;
    wanted.changed = false;
    put_aside(wanted);
  }
  return wanted.cases;
}

void CaseResults::put_aside(const Page& kept) const {
  if (pages_.size() <= pages_in_memory) return;
  std::size_t in_memory = 0;
  Page* oldest = nullptr;
  for (Page& one : pages_) {
    if (!one.in_memory) continue;
    ++in_memory;
    if (&one != &kept && (oldest == nullptr || one.looked_at < oldest->looked_at)) oldest = &one;
  }
  if (in_memory <= pages_in_memory || oldest == nullptr) return;
  if (oldest->changed) {
    MessageWriter writer;
    for (const CaseResult& result : oldest->cases) put_case(writer, result);
    const std::size_t bytes = writer.bytes().size();
    const bool fits = bytes <= oldest->bytes;
    const std::uint64_t place = fits ? oldest->place : file_end_;
    if (!file_.write(place, writer.bytes())) return;
    if (!fits) file_end_ += bytes;
    oldest->place = place;
    oldest->bytes = bytes;
    oldest->count = oldest->cases.size();
  }
  oldest->cases = {};
  oldest->in_memory = false;
}

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// The cases of a run: a list that takes the same memory however long it is. Of a long one few cases stand in memory;
// the others wait in a temporary file.
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "harness/case_run.hpp"
#include "harness/spool_file.hpp"

namespace qkcts {

// Used like a std::vector, but for this: cases whose numbers differ by a multiple of `in_memory` share a place in
// memory, so that a reference to one holds until the other is asked for. Whoever keeps cases for longer keeps their
// numbers.
class CaseResults {
 public:
  static constexpr std::size_t in_memory = 256;

  template <class List, class Result>
  class Place {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = CaseResult;
    using difference_type = std::ptrdiff_t;
    using pointer = Result*;
    using reference = Result&;

    Place() = default;
    Place(List& list, std::size_t number) : list_(&list), number_(number) {}
    Result& operator*() const { return (*list_)[number_]; }
    Result* operator->() const { return &(*list_)[number_]; }
    Place& operator++() {
      ++number_;
      return *this;
    }
    Place operator++(int) { return {*list_, number_++}; }
    bool operator==(const Place& other) const = default;

   private:
    List* list_ = nullptr;
    std::size_t number_ = 0;
  };
  using iterator = Place<CaseResults, CaseResult>;
  using const_iterator = Place<const CaseResults, const CaseResult>;
  using value_type = CaseResult;

  CaseResults() = default;
  CaseResults(std::initializer_list<CaseResult> results);
  CaseResults(const CaseResults& other);
  CaseResults& operator=(const CaseResults& other);
  CaseResults(CaseResults&& other) noexcept = default;
  CaseResults& operator=(CaseResults&& other) noexcept = default;
  ~CaseResults() = default;

  std::size_t size() const { return put_aside_.size(); }
  bool empty() const { return size() == 0; }
  const CaseResult& operator[](std::size_t number) const { return at_hand(number).result; }
  CaseResult& operator[](std::size_t number);
  const CaseResult& back() const { return (*this)[size() - 1]; }
  CaseResult& back() { return (*this)[size() - 1]; }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }
  iterator begin() { return {*this, 0}; }
  iterator end() { return {*this, size()}; }

  CaseResult& push_back(CaseResult result);
  CaseResult& emplace_back() { return push_back({}); }
  void pop_back() { put_aside_.pop_back(); }
  void resize(std::size_t count);
  void clear();

 private:
  struct Kept {
    std::size_t number = 0;
    CaseResult result;
    bool changed = false;  // what the file holds of it is old
  };
  Kept& at_hand(std::size_t number) const;
  void put_aside(const Kept& kept) const;

  // Which cases are where is no part of what the list says.
  mutable std::deque<Kept> kept_;                    // case `number` has its place in memory at number % in_memory
  mutable std::vector<SpoolFile::Place> put_aside_;  // of each case, once it had to make room for another
  mutable SpoolFile file_;
};

}  // namespace qkcts

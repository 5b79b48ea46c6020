// SPDX-License-Identifier: Apache-2.0
// The cases of a run: a list that takes the same memory however long it is. Of a long one only the pages that were
// looked at last stand in memory; the others wait in a temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "harness/case_run.hpp"
#include "harness/spool_file.hpp"

namespace qkcts {

// Used like a std::vector, but for this: a reference holds until cases of `pages_in_memory` other pages were asked for.
// Whoever keeps cases for longer keeps their numbers. Where there is no room for a temporary file all stays in memory.
class CaseResults {
 public:
  static constexpr std::size_t page_size = 32, pages_in_memory = 8;

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
  CaseResults(CaseResults&& other) noexcept { swap(other); }
  CaseResults& operator=(CaseResults&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CaseResults() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const CaseResult& operator[](std::size_t number) const { return page(number)[number % page_size]; }
  CaseResult& operator[](std::size_t number);
  const CaseResult& back() const { return (*this)[size_ - 1]; }
  CaseResult& back() { return (*this)[size_ - 1]; }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size_}; }
  iterator begin() { return {*this, 0}; }
  iterator end() { return {*this, size_}; }

  CaseResult& push_back(CaseResult result);
  CaseResult& emplace_back() { return push_back({}); }
  void pop_back();
  void resize(std::size_t count);
  void clear();

  std::size_t cases_in_memory() const;

 private:
  struct Page {
    std::vector<CaseResult> cases;
    bool in_memory = true, changed = true;  // changed: what the file holds of it is old
    std::uint64_t place = 0;                // in the file
    std::size_t bytes = 0, count = 0;       // there, and the cases that they are; 0: nothing
    std::uint64_t looked_at = 0;
  };
  void swap(CaseResults& other) noexcept;
  std::vector<CaseResult>& page(std::size_t number) const;
  void put_aside(const Page& kept) const;

  // Which pages are where is no part of what the list says.
  mutable std::vector<Page> pages_;
  mutable SpoolFile file_;
  mutable std::uint64_t file_end_ = 0, clock_ = 0;
  std::size_t size_ = 0;
};

}  // namespace qkcts

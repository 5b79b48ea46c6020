// SPDX-License-Identifier: Apache-2.0
// A list of cases longer than what stands in memory of it: the same list.
#include "harness/case_results.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/growing_file.hpp"
#include "harness/run_json_parts.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

constexpr std::size_t many = 3 * CaseResults::in_memory + 5;

// Cases of every kind, each with a name of its own.
std::vector<CaseResult> different_results() {
  const RunRecord record = full_record();
  std::vector<CaseResult> results;
  for (std::size_t i = 0; i < many; ++i) {
    results.push_back(record.cases[i % record.cases.size()]);
    results.back().slug = "many/" + std::to_string(i);
  }
  return results;
}

CaseResults listed(const std::vector<CaseResult>& results) {
  CaseResults list;
  for (const CaseResult& result : results) list.push_back(result);
  return list;
}

void expect_same(const CaseResults& list, const std::vector<CaseResult>& results) {
  ASSERT_EQ(list.size(), results.size());
  std::size_t number = 0;
  for (const CaseResult& result : list) ASSERT_EQ(case_json(result), case_json(results[number++]));
  for (const std::size_t i : {results.size() - 1, std::size_t{0}, results.size() / 2})
    EXPECT_EQ(case_json(list[i]), case_json(results[i]));
}

TEST(CaseResults, HoldsWhatWasPutIntoIt) {
  const std::vector<CaseResult> results = different_results();
  const CaseResults list = listed(results);
  expect_same(list, results);
  CaseResults copy = list;
  copy[0].slug = "other";
  expect_same(list, results);
  EXPECT_EQ(copy[0].slug, "other");
  const CaseResults moved = std::move(copy);
  EXPECT_EQ(moved.size(), many);
}

TEST(CaseResults, KeepsChangesOfCasesThatWerePutAside) {
  std::vector<CaseResult> results = different_results();
  CaseResults list = listed(results);
  for (CaseResult& result : list) result.detail = std::string(result.slug.size() * 20, '+');  // longer than before
  for (CaseResult& result : results) result.detail = std::string(result.slug.size() * 20, '+');
  list[1].stages.clear();  // shorter
  results[1].stages.clear();
  expect_same(list, results);
}

TEST(CaseResults, ShrinksAndGrows) {
  std::vector<CaseResult> results = different_results();
  CaseResults list = listed(results);
  for (const std::size_t rest : {CaseResults::in_memory + 3, CaseResults::in_memory, std::size_t{7}}) {
    while (list.size() > rest) list.pop_back();
    list.push_back(results.back());
    results[rest] = results.back();
    results.resize(rest + 1);
    expect_same(list, results);
  }
  while (list.size() < many) results.push_back(list.push_back(full_record().cases[0]));
  expect_same(list, results);
  list.clear();
  EXPECT_TRUE(list.empty());
}

// Heat maps are in no case_json().
TEST(CaseResults, HoldsHeatMaps) {
  std::vector<CaseResult> results = different_results();
  HeatMap map(3, 2);
  map.add(2, 1, 0.75);
  results[0].stages[0].judgement->heat = map;
  const CaseResults list = listed(results);
  const HeatMap& again = list[0].stages[0].judgement->heat;
  ASSERT_EQ(again.rows(), 3u);
  ASSERT_EQ(again.columns(), 2u);
  EXPECT_EQ(again.stored(), 3u);
  EXPECT_EQ(again.at(2, 1), 0.75F);
  EXPECT_EQ(again.at(0, 0), heat_unjudged);
}

TEST(CaseResults, StaysInMemoryWhereThereIsNoRoom) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere/at/all", 1);
  const std::vector<CaseResult> results = different_results();
  const CaseResults list = listed(results);
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", kept.c_str(), 1);
  }
  expect_same(list, results);
}

// The controls of what the class says of its references.
TEST(CaseResults, AReferenceHoldsUntilACaseThatSharesItsPlaceIsAskedFor) {
  const CaseResults list = listed(different_results());
  const CaseResult& first = list[0];
  for (std::size_t number = 1; number < many; ++number)
    if (number % CaseResults::in_memory != 0) static_cast<void>(list[number]);
  EXPECT_EQ(&list[0], &first);
  EXPECT_EQ(first.slug, "many/0");
  static_cast<void>(list[CaseResults::in_memory]);
  EXPECT_EQ(first.slug, "many/256");
}

// Piece by piece, and as the JSON library would write the whole of it.
TEST(RunJson, IsWrittenPieceByPieceAsOneDocument) {
  RunRecord none = full_record();
  none.cases.clear();
  for (const RunRecord& record : {full_record(), sample_record(), none})
    EXPECT_EQ(run_json_text(record), to_json(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace
}  // namespace qkcts

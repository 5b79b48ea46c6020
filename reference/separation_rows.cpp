// SPDX-License-Identifier: Apache-2.0
#include "reference/separation_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

using Rows = std::set<std::uint32_t>;

template <class Better>
std::uint32_t best(const std::vector<double>& sizes, std::int64_t first, std::int64_t count, const Better& better) {
  auto found = static_cast<std::size_t>(first);
  const std::size_t end = sizes.empty() ? found : found + static_cast<std::size_t>(count);
  for (std::size_t i = found; i < end; ++i)
    if (better(sizes[i], sizes[found])) found = i;
  return static_cast<std::uint32_t>(found);
}

bool same_bytes(const qkcts_mask& a, const qkcts_mask& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Rows whose visible keys differ: the one that changes by the largest share of its keys, and the last one.
Rows rows_that_see_others(const Case& c, const Case& neighbour) {
  Rows rows;
  const qkcts_contract &mine = c.contract.terms, &theirs = neighbour.contract.terms;
  if (same_bytes(mine.mask, theirs.mask) && std::memcmp(&mine.regions, &theirs.regions, sizeof mine.regions) == 0 &&
      mine.score.bias_order == theirs.score.bias_order)
    return rows;
  const Visibility own(c), other(neighbour);
  const qkcts_shape& s = c.shape;
  double largest = 0;
  std::uint32_t found = 0, last = 0;
  for (std::int64_t r = 0; r < s.batch * s.q_heads * s.q_len; ++r) {
    const std::int64_t b = r / (s.q_heads * s.q_len), h = r / s.q_len % s.q_heads, qq = r % s.q_len;
    double differing = 0, of_own = 0, of_other = 0;
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      const bool seen = own.visible(b, h, qq, key), seen_there = other.visible(b, h, qq, key);
      differing += seen != seen_there ? 1 : 0;
      of_own += seen ? 1 : 0;
      of_other += seen_there ? 1 : 0;
    }
    if (differing == 0) continue;
    const double fewer = std::min(of_own, of_other);
    const double share = fewer == 0 ? static_cast<double>(s.k_len) + 1 : differing / fewer;
    if (share > largest) {
      largest = share;
      found = static_cast<std::uint32_t>(r);
    }
    last = static_cast<std::uint32_t>(r);
  }
  if (largest > 0) rows = {found, last};
  return rows;
}

// Where tables are inputs, these clauses say how they were made, and nothing of what is done with them (QK-ROPE-10,
// 11).
void take_makers(const qkcts_contract& from, qkcts_contract& to) {
  to.rope.theta = from.rope.theta;
  qkcts_rotation made = from.rotation;
  made.sense = to.rotation.sense;
  made.layout = to.rotation.layout;
  made.tables = to.rotation.tables;
  to.rotation = made;
}

bool has_empty_row(const Case& c) {
  const Visibility visibility(c);
  for (std::int64_t b = 0; b < c.shape.batch; ++b)
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t qq = 0; qq < c.shape.q_len; ++qq) {
        bool is_empty = true;
        for (std::int64_t key = 0; key < c.shape.k_len && is_empty; ++key)
          is_empty = !visibility.visible(b, h, qq, key);
        if (is_empty) return true;
      }
  return false;
}

bool all_finite(const Case& c) {
  for (const Input input : {Input::q, Input::k, Input::v, Input::q_x, Input::k_x})
    if (c.inputs.has(input) && !c.inputs.at(input).all_finite()) return false;
  return true;
}

std::set<std::uint32_t> extremes_of(const std::vector<double>& sizes) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t row = 0; row < sizes.size(); ++row)
    if (sizes[row] > 0) order.push_back(row);
  std::stable_sort(order.begin(), order.end(),
                   [&sizes](std::uint32_t a, std::uint32_t b) { return sizes[a] < sizes[b]; });
  std::set<std::uint32_t> rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, order.size()); ++i) rows.insert(order[i]);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, order.size()); ++i) rows.insert(order[order.size() - 1 - i]);
  return rows;
}

// One neighbour.
class Choice {
 public:
  Choice(const Case& c, const StageRows& stored, const RowSizes& q, const RowSizes& k, const RowSizes& v,
         const Case& neighbour)
      : shape_(c.shape),
        terms_(c.contract.terms),
        stored_(stored),
        neighbour_(neighbour.contract.terms),
        q_(q),
        k_(k),
        v_(v),
        others_(rows_that_see_others(c, neighbour)) {}

  StageRows batch(std::size_t index) const {
    const std::int64_t rows = shape_.batch * shape_.q_heads * shape_.q_len;
    Rows wanted;
    if (index + 1 == SeparationRows::batches) {
      insert_spread(wanted, rows, 32);
      return stage_rows(wanted, 256);
    }
    // One head: that of the row that sees other keys, else of the smallest row of q.
    std::int64_t head = -1;
    if (!others_.empty()) head = *others_.begin() / shape_.q_len;
    if (head < 0) head = head_of_other_mapping();
    if (head < 0) head = q_.smallest(0, rows) / shape_.q_len;
    if (index == 0) {
      wanted = of_head(head);
      for (const std::uint32_t row : others_)
        if (row / shape_.q_len == head) wanted.insert(row);
      return stage_rows(wanted, 0);
    }
    // A second one, that of the largest row; more of the first; and some of all heads.
    std::int64_t second = q_.largest(0, rows) / shape_.q_len;
    if (second == head) second = (head + shape_.q_heads / 2 + 1) % (shape_.batch * shape_.q_heads);
    wanted = of_head(second);
    wanted.insert(others_.begin(), others_.end());
    for (const std::int64_t part : {1, 2, 3})
      wanted.insert(static_cast<std::uint32_t>(head * shape_.q_len + shape_.q_len * part / 4));
    insert_spread(wanted, rows, 8);
    return stage_rows(wanted, 8);
  }

 private:
  // The last query of a head sees the most keys under most masks.
  Rows of_head(std::int64_t head) const {
    const std::int64_t first = head * shape_.q_len;
    return {q_.smallest(first, shape_.q_len), q_.largest(first, shape_.q_len),
            static_cast<std::uint32_t>(first + shape_.q_len - 1), static_cast<std::uint32_t>(first + shape_.q_len / 2)};
  }

  std::int64_t head_of_other_mapping() const {
    for (std::int64_t h = 0; h < shape_.q_heads; ++h)
      if (kv_head_of(terms_, shape_, h) != kv_head_of(neighbour_, shape_, h)) return h;
    return -1;
  }

  // `count` of `all` rows at equal distances.
  static void insert_spread(Rows& rows, std::int64_t all, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) rows.insert(static_cast<std::uint32_t>(all * (2 * i + 1) / (2 * count)));
  }

  // A row of q, k or v costs little beside one of attention: the extreme ones are always among them.
  StageRows stage_rows(const Rows& rows, std::int64_t spread) const {
    StageRows result;
    const StageSet stages = stages_of(neighbour_);
    for (const qkcts_stage stage : all_stages) {
      if ((stages & bit(stage)) == 0) continue;
      if ((attention_stages & bit(stage)) != 0) {
        result[stage] = stored_of(stage, rows);
        continue;
      }
      const bool of_queries = stage == QKCTS_STAGE_Q_PROJ || stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_Q_ROPE;
      Rows wanted = (of_queries ? q_ : stage == QKCTS_STAGE_V_NORM ? v_ : k_).extremes();
      if (of_queries) wanted.insert(rows.begin(), rows.end());
      insert_spread(wanted, row_count(stage, shape_), spread);
      wanted.insert(static_cast<std::uint32_t>(row_count(stage, shape_) - 1));
      result[stage] = stored_of(stage, wanted);
    }
    return result;
  }

  // What of it the case stores; if nothing, the stored row that comes before the last wanted one.
  std::vector<std::uint32_t> stored_of(qkcts_stage stage, const Rows& wanted) const {
    const std::vector<std::uint32_t>& all = stored_[stage];
    std::vector<std::uint32_t> rows;
    std::set_intersection(all.begin(), all.end(), wanted.begin(), wanted.end(), std::back_inserter(rows));
    if (!rows.empty() || all.empty()) return rows;
    const auto after = std::upper_bound(all.begin(), all.end(), *wanted.rbegin());
    return {after == all.begin() ? *after : *std::prev(after)};
  }

  const qkcts_shape& shape_;
  const qkcts_contract& terms_;
  const StageRows& stored_;
  const qkcts_contract& neighbour_;
  const RowSizes &q_, &k_, &v_;
  Rows others_;
};

}  // namespace

RowSizes::RowSizes(const Case& c, Input input, bool centred) {
  if (!c.inputs.has(input)) return;
  const Tensor& x = c.inputs.at(input);
  const auto width = static_cast<std::size_t>(x.shape[3]);
  const std::vector<double> values = x.values();
  for (std::size_t i = 0; i < values.size(); i += width) {
    double sum = 0, squares = 0;
    for (std::size_t d = i; d < i + width && centred; ++d) sum += values[d];
    const double mean = sum / static_cast<double>(width);
    for (std::size_t d = i; d < i + width; ++d) squares += (values[d] - mean) * (values[d] - mean);
    if (std::isnan(squares)) squares = 0;  // a row that holds a NaN is not compared by size
    sizes_.push_back(squares);
  }
  extremes_ = extremes_of(sizes_);
}

std::uint32_t RowSizes::smallest(std::int64_t first, std::int64_t count) const {
  const auto better = [](double a, double b) { return a > 0 && (a < b || !(b > 0)); };
  return best(sizes_, first, count, better);
}

std::uint32_t RowSizes::largest(std::int64_t first, std::int64_t count) const {
  return best(sizes_, first, count, [](double a, double b) { return a > b; });
}

SeparationRows::SeparationRows(const Case& c, const StageRows& stored)
    : case_(c),
      stored_(stored),
      q_(c, Input::q, c.contract.terms.q_norm.center != 0),
      k_(c, Input::k, c.contract.terms.k_norm.center != 0),
      v_(c, Input::v, c.contract.terms.v_norm.center != 0),
      is_finite_(all_finite(c)) {}

namespace {

// The place of a query among the keys, which a mask gives, is part of what a distance between them means, too.
bool bias_means_the_same(const Case& a, const Case& b) {
  const std::uint32_t alibi = a.contract.terms.logits.alibi;
  if (alibi != QKCTS_ALIBI_RELATIVE && alibi != QKCTS_ALIBI_SYMMETRIC) return true;
  const Visibility of_a(a), of_b(b);
  for (std::int64_t entry = 0; entry < a.shape.batch; ++entry)
    if (of_a.offset(entry) != of_b.offset(entry)) return false;
  return true;
}

}  // namespace

bool SeparationRows::are_equal(const Case& neighbour) const {
  const qkcts_contract own = normalised(case_.contract.terms);
  qkcts_contract terms = normalised(neighbour.contract.terms);
  if (terms.softmax.hidden_values != own.softmax.hidden_values && !is_finite_) return false;
  terms.softmax.hidden_values = own.softmax.hidden_values;
  terms.mask = own.mask;
  if (own.rotation.angles == QKCTS_ANGLES_TABLE && terms.rotation.angles == QKCTS_ANGLES_TABLE) take_makers(own, terms);
  if (!bias_means_the_same(case_, neighbour)) return false;
  if (std::memcmp(&terms, &own, sizeof own) != 0 || !rows_that_see_others(case_, neighbour).empty()) return false;
  return neighbour.contract.terms.mask.empty_row == own.mask.empty_row || !has_empty_row(case_);
}

StageRows SeparationRows::batch(const Case& neighbour, std::size_t index) const {
  return Choice(case_, stored_, q_, k_, v_, neighbour).batch(index);
}

}  // namespace qkcts

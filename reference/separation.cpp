// SPDX-License-Identifier: Apache-2.0
#include "reference/separation.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "conformance/format.hpp"
#include "conformance/special_values.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The classes that pass at an element, as a set; 0: it is not judged.
constexpr unsigned finite = 1, plus_infinity = 2, minus_infinity = 4, nan = 8;

unsigned classes(const ProvenStage& stage, std::size_t i) {
  const double z = stage.hi[i];
  const unsigned own = std::isnan(z) ? nan : !std::isinf(z) ? finite : z > 0 ? plus_infinity : minus_infinity;
  switch (stage.rule[i]) {
    case ElementRule::hidden:
    case ElementRule::free:
      return 0;
    case ElementRule::special:
      return own | nan;
    case ElementRule::not_finite:
      return plus_infinity | minus_infinity | nan;
    default:
      return own;
  }
}

// |z - z_m| from below. z = hi + lo/256 ulp64(hi), off by at most 2^-9 ulp64 each; hi - hi_m is off by half an ulp of
// the difference, the rests by less: a share of 2^-50 covers the roundings.
double distance(const ProvenStage& a, std::size_t i, const ProvenStage& b, std::size_t j) {
  const double unit_a = ulp(Format::binary64, a.hi[i]), unit_b = ulp(Format::binary64, b.hi[j]);
  const double rest = a.lo[i] * unit_a - b.lo[j] * unit_b;
  const double difference = std::fabs((a.hi[i] - b.hi[j]) + rest / 256);
  return std::max(0.0, difference * (1 - 0x1p-50) - (unit_a + unit_b) * 0x1p-9);
}

double separation(const ProvenStage& a, const StageBudget& budget_a, std::size_t i, const ProvenStage& b,
                  const StageBudget& budget_b, std::size_t j) {
  const unsigned of_a = classes(a, i), of_b = classes(b, j);
  if (of_a == 0 || of_b == 0) return 0;
  if (budget_a.trust[i] == Trust::domain || budget_b.trust[j] == Trust::domain) return 0;
  if ((of_a & of_b) == 0) return infinity;
  if (of_a != finite || of_b != finite) return 0;
  const double apart = distance(a, i, b, j);
  if (apart == 0) return 0;
  // The sum of two binary32 numbers is exact in binary64; the quotient may be rounded up by half an ulp.
  const double room = static_cast<double>(budget_a.delta[i]) + static_cast<double>(budget_b.delta[j]);
  return room == 0 ? infinity : apart / room * (1 - 0x1p-50);
}

// Further rows are looked at only where the first leave it open which side of 1 the separation lies on: other rows give
// a few times as much or as little. One of exactly 0 says that these rows do not show the clause at all.
bool is_plain(double separation, std::size_t batches) {
  if (batches == 1) return separation >= 1.5 || (separation > 0 && separation < 0.125);
  return separation >= 1 || separation < 0.5;
}

}  // namespace

Separation largest_separation(const SeparationTable& table, std::size_t profile) {
  Separation largest;
  for (const std::vector<Separation>& stage : table)
    if (!stage.empty() && stage[profile].value > largest.value) largest = stage[profile];
  return largest;
}

struct Separator::Evaluated {
  std::array<ProvenStage, QKCTS_STAGE_COUNT> values;
  std::array<std::vector<StageBudget>, QKCTS_STAGE_COUNT> budgets;
};

Separator::Separator(const Case& c, const StageRows& rows, std::vector<Profile> profiles)
    : case_(c),
      profiles_(std::move(profiles)),
      held_(std::make_unique<Evaluated>(evaluated(c, rows))),
      stored_(rows),
      rows_(c, stored_) {
  for (const qkcts_stage stage : all_stages)
    if (!rows[stage].empty()) own_[stage] = {&held_->values[stage], &held_->budgets[stage]};
  hold_vectors();
}

Separator::Separator(const Case& c, const CaseView& own, std::vector<Profile> profiles)
    : case_(c), profiles_(std::move(profiles)), own_(own), rows_(c, stored_) {
  for (const qkcts_stage stage : all_stages)
    if (own[stage].values != nullptr) stored_[stage] = own[stage].values->rows;
  hold_vectors();
}

void Separator::hold_vectors() {
  vectors_ = std::make_unique<Evaluation>(case_, StageRows{});
  for (const Profile& profile : profiles_) vector_budgets_.emplace_back(case_, vectors_->vectors(), profile);
}

Separator::~Separator() = default;

Separator::Evaluated Separator::evaluated(const Case& c, const StageRows& rows) const {
  BudgetedResult result = evaluate_with_budgets(c, rows, profiles_);
  Evaluated evaluated;
  evaluated.values = std::move(result.values.stages);
  for (std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets : result.budgets)
    for (const qkcts_stage stage : all_stages) evaluated.budgets[stage].push_back(std::move(budgets[stage]));
  return evaluated;
}

// A neighbour of which more and more rows are looked at: its q, k and v and their errors are kept, and no row is given
// twice. Where q, k and v mean the same as in the case itself, its own serve, their stages are equal, and nothing
// is to be found there.
class Separator::Other {
 public:
  Other(const Separator& own, const Case& neighbour)
      : own_(own),
        neighbour_(neighbour),
        shares_(have_same_vectors(own.case_, neighbour)),
        looks_first_(!shares_ && !has_rounding_points(neighbour.contract.terms.rounding)),
        stored_(own.stored_rows(neighbour)) {
    if (!shares_ && !looks_first_ && !is_special()) hold_vectors();
  }

  // Of the rows that have not been given yet. Throws what evaluate() throws; the object is of no use then.
  Evaluated further(StageRows rows) {
    if (shares_) rows = part_of(rows, attention_stages);
    for (const qkcts_stage stage : all_stages) rows[stage] = without(rows[stage], given_[stage]);
    Evaluated result = !shares_ && (looks_first_ || is_special()) ? fresh(rows) : continued(rows);
    looks_first_ = false;
    for (const qkcts_stage stage : all_stages) given_[stage].insert(rows[stage].begin(), rows[stage].end());
    return result;
  }

  // All that is stored and has not been given yet, in blocks; one where all are evaluated apart.
  std::vector<StageRows> blocks_left() {
    StageRows left;
    for (const qkcts_stage stage : all_stages) left[stage] = without(stored_[stage], given_[stage]);
    if (!shares_ && is_special()) return {left};
    std::vector<StageRows> blocks;
    if (!shares_) blocks.push_back(part_of(left, ~attention_stages));
    const std::vector<std::uint32_t> all = attention_rows_of(neighbour_, left);
    for (std::size_t begin = 0; begin < all.size(); begin += rows_of_a_block) {
      const std::uint32_t first = all[begin], last = all[std::min(begin + rows_of_a_block, all.size()) - 1];
      blocks.push_back(within(part_of(left, attention_stages), first, last));
    }
    return blocks;
  }

 private:
  static constexpr std::size_t rows_of_a_block = 32;

  static StageRows part_of(const StageRows& rows, StageSet stages) {
    StageRows part;
    for (const qkcts_stage stage : all_stages)
      if ((stages & bit(stage)) != 0) part[stage] = rows[stage];
    return part;
  }
  static StageRows within(StageRows rows, std::uint32_t first, std::uint32_t last) {
    for (std::vector<std::uint32_t>& list : rows)
      list.erase(std::remove_if(list.begin(), list.end(), [&](std::uint32_t row) { return row < first || row > last; }),
                 list.end());
    return rows;
  }
  static std::vector<std::uint32_t> without(const std::vector<std::uint32_t>& rows,
                                            const std::set<std::uint32_t>& given) {
    std::vector<std::uint32_t> left;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(left),
                 [&given](std::uint32_t row) { return given.count(row) == 0; });
    return left;
  }

  bool is_special() {
    if (!is_special_) is_special_ = has_special_values(neighbour_);
    return *is_special_;
  }

  void hold_vectors() {
    vectors_ = Evaluation::beside(neighbour_, part_of(stored_, ~attention_stages), *own_.vectors_);
    for (const Profile& profile : own_.profiles_) budgets_.emplace_back(neighbour_, vectors_->vectors(), profile);
  }

  Evaluated continued(const StageRows& rows) {
    Evaluated result;
    if (!shares_) {
      if (!vectors_) hold_vectors();
      vectors_->evaluate_vectors_of(rows);
      for (const qkcts_stage stage : all_stages)
        if ((attention_stages & bit(stage)) == 0 && !rows[stage].empty())
          result.values[stage] = vectors_->proven(stage, rows[stage]);
    }
    Evaluation evaluation(neighbour_, part_of(rows, attention_stages), shares_ ? *own_.vectors_ : *vectors_);
    evaluation.evaluate_rows(attention_rows_of(neighbour_, rows));
    ReferenceResult of_rows = evaluation.result();
    for (const qkcts_stage stage : all_stages)
      if ((attention_stages & bit(stage)) != 0) result.values[stage] = std::move(of_rows.stages[stage]);
    for (std::size_t i = 0; i < own_.profiles_.size(); ++i) {
      CaseBudgets of_profile(neighbour_, shares_ ? own_.vector_budgets_[i] : budgets_[i]);
      add(of_profile.of(evaluation.rows(), rows), result);
    }
    return result;
  }

  // Of one piece. NaN and infinities, which are put over what was evaluated, take that.
  Evaluated fresh(const StageRows& rows) const {
    Evaluation evaluation(neighbour_, rows);
    evaluation.evaluate_stored_vectors();
    evaluation.evaluate_rows(attention_rows_of(neighbour_, rows));
    Evaluated result;
    result.values = evaluation.result().stages;
    for (const Profile& profile : own_.profiles_)
      add(CaseBudgets(neighbour_, evaluation.vectors(), profile).of(evaluation.rows(), rows), result);
    return result;
  }

  static void add(std::array<StageBudget, QKCTS_STAGE_COUNT> budgets, Evaluated& to) {
    for (const qkcts_stage stage : all_stages) to.budgets[stage].push_back(std::move(budgets[stage]));
  }

  const Separator& own_;
  const Case& neighbour_;
  bool shares_;
  bool looks_first_;  // most neighbours are told apart by the first few rows: nothing is kept for others yet
  std::optional<bool> is_special_;
  StageRows stored_;
  std::array<std::set<std::uint32_t>, QKCTS_STAGE_COUNT> given_;
  std::optional<Evaluation> vectors_;  // without rows of attention
  std::vector<CaseBudgets> budgets_;   // by profile
};

SeparationTable Separator::empty_table(const Case& neighbour) const {
  SeparationTable table;
  for (const qkcts_stage stage : all_stages)
    if (own_[stage].values != nullptr && (stages_of(neighbour.contract.terms) & bit(stage)) != 0)
      table[stage].resize(profiles_.size());
  return table;
}

// By the elements of stored row `at` of the other, if this case stores it too.
void Separator::raise(std::vector<Separation>& largest, const Evaluated& other, qkcts_stage stage,
                      std::size_t at) const {
  const ProvenStage& a = *own_[stage].values;
  const ProvenStage& b = other.values[stage];
  const auto found = std::lower_bound(a.rows.begin(), a.rows.end(), b.rows[at]);
  if (found == a.rows.end() || *found != b.rows[at]) return;
  const auto length = static_cast<std::size_t>(row_length(stage, case_.shape));
  const std::size_t i = static_cast<std::size_t>(found - a.rows.begin()) * length, j = at * length;
  for (std::size_t profile = 0; profile < profiles_.size(); ++profile)
    for (std::size_t column = 0; column < length; ++column) {
      const double value =
          separation(a, (*own_[stage].budgets)[profile], i + column, b, other.budgets[stage][profile], j + column);
      if (value > largest[profile].value) largest[profile] = {value, b.rows[at], static_cast<std::int64_t>(column)};
    }
}

void Separator::raise(SeparationTable& table, const Evaluated& other) const {
  for (const qkcts_stage stage : all_stages)
    for (std::size_t at = 0; at < other.values[stage].rows.size() && !table[stage].empty(); ++at)
      raise(table[stage], other, stage, at);
}

StageRows Separator::stored_rows(const Case& neighbour) const {
  StageRows rows;
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(neighbour.contract.terms) & bit(stage)) == 0) continue;
    rows[stage] = own_[stage].values == nullptr ? std::vector<std::uint32_t>{0} : own_[stage].values->rows;
  }
  return rows;
}

SeparationTable Separator::to(const Case& neighbour) const {
  SeparationTable table = empty_table(neighbour);
  raise(table, evaluated(neighbour, stored_rows(neighbour)));
  return table;
}

std::vector<std::vector<Separation>> Separator::by_row(const Case& neighbour, qkcts_stage stage) const {
  const Evaluated other = evaluated(neighbour, stored_rows(neighbour));
  std::vector<std::vector<Separation>> result;
  for (std::size_t at = 0; at < other.values[stage].rows.size(); ++at)
    raise(result.emplace_back(profiles_.size()), other, stage, at);
  return result;
}

// By what is left of the stored rows; nothing where one of them has no value.
void Separator::raise_by_all(SeparationTable& table, Other& other) const {
  SeparationTable raised = table;
  for (const StageRows& block : other.blocks_left()) raise(raised, other.further(block));
  table = std::move(raised);
}

// Where some rows have no value under the neighbour, or one that is not proven, the others still tell. Then q, k and v
// are made again for them: an evaluation that has thrown is of no use.
SeparationTable Separator::quickly_to(const Case& neighbour) const {
  SeparationTable table = empty_table(neighbour);
  if (rows_.are_equal(neighbour)) return table;
  std::exception_ptr refusal;
  bool is_told = false;
  std::optional<Other> other(std::in_place, *this, neighbour);  // throws where q, k or v has no value at all
  for (std::size_t batch = 0; batch <= SeparationRows::batches; ++batch) {
    try {
      if (!other) other.emplace(*this, neighbour);
      // Where even the last of them leaves it open, all that are stored decide.
      if (batch < SeparationRows::batches) {
        raise(table, other->further(rows_.batch(neighbour, batch)));
      } else {
        raise_by_all(table, *other);
      }
      is_told = true;
    } catch (const UndecidedError&) {
      refusal = std::current_exception();
      other.reset();
      continue;
    } catch (const InputError&) {
      refusal = std::current_exception();
      other.reset();
      continue;
    }
    double least = infinity;
    for (std::size_t profile = 0; profile < profiles_.size(); ++profile)
      least = std::min(least, largest_separation(table, profile).value);
    if (is_plain(least, batch + 1)) break;
  }
  if (!is_told) std::rethrow_exception(refusal);
  return table;
}

}  // namespace qkcts

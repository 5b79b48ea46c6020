// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "reference/attention.hpp"
#include "reference/point_overflow.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/input_family.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

constexpr double mistrusted_limit = 0.01;
constexpr std::size_t cases_ahead = 64;  // finished cases that may wait for their turn to be written

struct Outcome {
  std::optional<GoldenCase> golden;
  std::vector<DroppedProfile> dropped;
  std::string refusal;
  std::exception_ptr error;
};

Range range_of(const std::vector<double>& per_row) {
  std::vector<double> values;
  for (const double x : per_row)
    if (!std::isnan(x)) values.push_back(x);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

// Share of the judged elements that say nothing under this budget: mistrusted, or all of them domain.
double useless_share(const ProvenStage& values, const StageBudget& budget) {
  double judged = 0, mistrusted = 0, domain = 0;
  for (std::size_t i = 0; i < values.rule.size(); ++i) {
    if (values.rule[i] != ElementRule::budget && values.rule[i] != ElementRule::budget_exact) continue;
    ++judged;
    if (budget.trust[i] == Trust::mistrusted) ++mistrusted;
    if (budget.trust[i] == Trust::domain) ++domain;
  }
  if (judged == 0) return 0;
  return domain == judged ? 1 : mistrusted / judged;
}

void drop_useless_profiles(GoldenCase& golden, std::vector<DroppedProfile>& dropped) {
  for (std::size_t profile = golden.profiles.size(); profile-- > 0;) {
    DroppedProfile worst{golden.input.slug, golden.profiles[profile], "", 0};
    for (const qkcts_stage stage : all_stages) {
      const GoldenStage& g = golden.stages[stage];
      if (!g.present) continue;
      const double share = useless_share(g.values, g.budgets[profile]);
      if (share > worst.share) worst = {worst.slug, worst.profile, std::string(stage_name(stage)), share};
    }
    if (worst.share <= mistrusted_limit) continue;
    dropped.insert(dropped.begin(), worst);
    golden.profiles.erase(golden.profiles.begin() + static_cast<std::ptrdiff_t>(profile));
    for (GoldenStage& g : golden.stages)
      if (g.present) g.budgets.erase(g.budgets.begin() + static_cast<std::ptrdiff_t>(profile));
  }
}

Outcome work_on(const PlannedCase& planned, Tier tier) {
  Outcome outcome;
  try {
    GoldenCase golden = make_golden(planned, outcome.dropped, tier);
    if (golden.profiles.empty()) {
      outcome.refusal = "no profile can judge it";
    } else if (std::string broken = input_family(planned.family).broken(golden); !broken.empty()) {
      outcome.refusal = fmt::format("the promise of family {} is broken: {}", planned.family, broken);
    } else {
      outcome.golden = std::move(golden);
    }
  } catch (const UndecidedError& undecided) {
    outcome.refusal = undecided.what();
  } catch (const PointOverflow& overflow) {
    outcome.refusal = overflow.what();
  } catch (const InputError& error) {
    outcome.error = std::make_exception_ptr(InputError(fmt::format("{}: {}", planned.slug, error.what())));
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

// [P, H * pairs] as [H, P, pairs].
Tensor cut_into_heads(const Tensor& wide, std::int64_t heads) {
  const std::int64_t rows = wide.shape[0], pairs = wide.shape[1] / heads;
  Tensor cut = Tensor::zeros(wide.type, {heads, rows, pairs});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t p = 0; p < rows; ++p)
      for (std::int64_t i = 0; i < pairs; ++i)
        cut.set_pattern(static_cast<std::size_t>((h * rows + p) * pairs + i),
                        wide.pattern(static_cast<std::size_t>((p * heads + h) * pairs + i)));
  return cut;
}

// Tables per head are one rotation of the full width, cut into heads (QK-ROPE-12).
RopeTables case_tables(const PlannedCase& planned, const DrawnCase& drawn) {
  qkcts_rope rope = planned.contract.terms.rope;
  qkcts_rotation rotation = planned.contract.terms.rotation;
  const auto tables_of = [&](std::int64_t width) {
    return rope_tables(rope, rotation, width, drawn.first_position, drawn.table_rows,
                       accumulator_format(planned.format));
  };
  if (rotation.tables != QKCTS_TABLES_PER_HEAD) return tables_of(planned.shape.head_dim);
  const std::int64_t heads = planned.shape.q_heads;
  const std::int64_t rotated = rope.rotated == 0 ? planned.shape.head_dim : rope.rotated;
  rope.rotated = 0;
  rotation.tables = QKCTS_TABLES_SHARED;
  const RopeTables wide = tables_of(heads * rotated);
  return {cut_into_heads(wide.cos, heads), cut_into_heads(wide.sin, heads)};
}

// Threads that work on the cases in order; the caller takes the outcomes in order.
class Workers {
 public:
  Workers(const Plan& plan, unsigned jobs, Tier tier) : plan_(plan), tier_(tier), outcomes_(plan.cases.size()) {
    for (unsigned i = 0; i < std::max(1U, jobs); ++i) threads_.emplace_back([this] { run(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Outcome take(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outcomes_[index].has_value(); });
    Outcome outcome = std::move(*outcomes_[index]);
    outcomes_[index].emplace();  // frees the case
    taken_ = index + 1;
    changed_.notify_all();
    return outcome;
  }

 private:
  void run() {
    while (true) {
      std::size_t index = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || next_ >= outcomes_.size() || next_ < taken_ + cases_ahead; });
        if (stop_ || next_ >= outcomes_.size()) return;
        index = next_++;
      }
      Outcome outcome = work_on(plan_.cases[index], tier_);
      {
        const std::lock_guard lock(mutex_);
        outcomes_[index] = std::move(outcome);
      }
      changed_.notify_all();
    }
  }

  const Plan& plan_;
  const Tier tier_;
  std::vector<std::optional<Outcome>> outcomes_;
  std::size_t next_ = 0, taken_ = 0;
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

}  // namespace

Case make_case(const PlannedCase& planned) {
  std::int64_t first_position = 0;
  return make_case(planned, first_position);
}

Case make_case(const PlannedCase& planned, std::int64_t& first_position) {
  DrawnCase drawn = draw_case(planned.family, planned.contract, planned.shape, planned.format, planned.seed);
  drawn.c.slug = planned.slug;
  first_position = drawn.first_position;
  if (drawn.table_rows > 0) {
    RopeTables tables = case_tables(planned, drawn);
    drawn.c.inputs.set(Input::cos, std::move(tables.cos));
    drawn.c.inputs.set(Input::sin, std::move(tables.sin));
  }
  return std::move(drawn.c);
}

Evidence make_evidence(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles, Tier tier) {
  ReferenceResult result = evaluate(c, rows, tier);
  Evidence evidence;
  for (const Profile& profile : profiles) {
    std::array<StageBudget, QKCTS_STAGE_COUNT> budgets = stage_budgets(c, result.exact, rows, profile);
    for (const qkcts_stage stage : all_stages) evidence.stages[stage].budgets.push_back(std::move(budgets[stage]));
  }
  for (const qkcts_stage stage : all_stages) {
    GoldenStage& golden = evidence.stages[stage];
    golden.present = (stages_of(c.contract.terms) & bit(stage)) != 0;
    if (!golden.present) golden.budgets.clear();
    golden.values = std::move(result.stages[stage]);
  }
  evidence.entropy = range_of(result.statistics.entropy);
  evidence.p_max = range_of(result.statistics.p_max);
  evidence.score_max = range_of(result.statistics.score_max);
  return evidence;
}

GoldenCase make_golden(const PlannedCase& planned, std::vector<DroppedProfile>& dropped, Tier tier) {
  GoldenCase golden;
  golden.input = make_case(planned, golden.first_position);
  golden.family = planned.family;
  golden.description = input_family(planned.family).reason;
  golden.seed = planned.seed;
  golden.profiles = planned.profiles;
  golden.own_profiles = planned.own_profiles;
  if (golden.profiles.empty())
    for (const Profile& profile : profiles_for(planned.format)) golden.profiles.push_back(profile.name);
  const StageRows rows = select_rows(planned.contract.terms, planned.shape, planned.rows, planned.seed);
  Evidence evidence = make_evidence(golden.input, rows, profiles_named(golden.profiles, golden.own_profiles), tier);
  golden.stages = std::move(evidence.stages);
  golden.entropy = evidence.entropy;
  golden.p_max = evidence.p_max;
  golden.score_max = evidence.score_max;
  drop_useless_profiles(golden, dropped);
  return golden;
}

GenerateReport generate_corpus(const Plan& plan, const std::string& path, const GenerateOptions& options) {
  GenerateReport report;
  GenerateProgress progress;
  progress.all = plan.cases.size();
  for (const PlannedCase& planned : plan.cases) progress.work_all += estimated_seconds(planned);
  CorpusWriter writer(path, {plan.suite, options.generator_version, plan.seed});
  Workers workers(plan, options.jobs, options.tier);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    Outcome outcome = workers.take(i);
    if (outcome.error) std::rethrow_exception(outcome.error);
    report.dropped.insert(report.dropped.end(), outcome.dropped.begin(), outcome.dropped.end());
    if (outcome.golden) {
      writer.add(*outcome.golden);
      ++report.written;
    } else {
      report.refused.push_back({plan.cases[i].slug, outcome.refusal});
    }
    progress.done = i + 1;
    progress.work_done += estimated_seconds(plan.cases[i]);
    progress.slug = plan.cases[i].slug;
    if (options.progress) options.progress(progress);
  }
  report.digest = writer.finish();
  return report;
}

double estimated_seconds(const PlannedCase& planned) {
  const qkcts_shape& s = planned.shape;
  const auto scores =
      static_cast<double>(s.batch * s.q_heads) * static_cast<double>(s.q_len) * static_cast<double>(s.k_len);
  constexpr double per_product = 200e-9, per_score = 8e-6;  // measured on one core of a server of 2021
  return 0.02 + scores * (static_cast<double>(s.head_dim + s.v_head_dim) * per_product + per_score);
}

double estimated_bytes(const PlannedCase& planned) {
  double bytes = 20000;
  for (const InputRequirement& need : required_inputs(planned.contract.terms, planned.shape, planned.format)) {
    double elements = 1;
    // A negative extent is that of a tensor's own: rows of tables, entries of what is projected.
    for (const std::int64_t extent : need.shape)
      elements *= static_cast<double>(extent > 0 ? extent : extent == -1 ? 1 : planned.shape.head_dim);
    bytes += elements * static_cast<double>(element_size(need.type));
  }
  const std::size_t profiles = planned.profiles.empty() ? profiles_for(planned.format).size() : planned.profiles.size();
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(planned.contract.terms) & bit(stage)) == 0) continue;
    const bool whole = planned.rows == 0 || stage == QKCTS_STAGE_OUTPUT || stage == QKCTS_STAGE_LSE;
    auto rows = static_cast<double>(row_count(stage, planned.shape));
    if (!whole) rows = std::min(rows, static_cast<double>(planned.rows));
    const auto value = static_cast<double>(element_size(element_type(stage_format(stage, planned.format))) + 8 + 2);
    bytes += rows * static_cast<double>(row_length(stage, planned.shape)) * (value + 4 * static_cast<double>(profiles));
  }
  return bytes;
}

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_shard.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "conformance/digest.hpp"
#include "vectors/generate.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

// Cases that stay in one shard: mostly one.
struct Bundle {
  std::vector<std::size_t> cases;
  double seconds = 0;
};

std::vector<Bundle> bundles_of(const Plan& plan) {
  std::vector<Bundle> bundles;
  std::map<std::string, std::size_t> named;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const std::string& name = plan.cases[i].together;
    const std::size_t place = name.empty() ? bundles.size() : named.emplace(name, bundles.size()).first->second;
    if (place == bundles.size()) bundles.emplace_back();
    bundles[place].cases.push_back(i);
    bundles[place].seconds += estimated_seconds(plan.cases[i]);
  }
  return bundles;
}

}  // namespace

Shard shard_from_text(std::string_view text) {
  Shard shard{0, 0};
  const char* const end = text.data() + text.size();
  const std::from_chars_result index = std::from_chars(text.data(), end, shard.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const std::from_chars_result count = std::from_chars(index.ptr + 1, end, shard.count);
    if (count.ec != std::errc() || count.ptr != end) shard.count = 0;
  }
  if (shard.count < 1 || shard.count > schema::most_shards || shard.index < 1 || shard.index > shard.count)
    throw InputError(fmt::format("shard \"{}\" is not I/N with 1 <= I <= N <= {}", text, schema::most_shards));
  return shard;
}

std::string shard_text(Shard shard) {
  return fmt::format("{}/{}", shard.index, shard.count);
}

// The longest first, each to the shard with the least to do so far: at most 4/3 of the best cut. Sums of the same
// numbers in the same order come out the same everywhere.
Plan cut_plan(const Plan& plan, Shard shard) {
  std::vector<Bundle> bundles = bundles_of(plan);
  std::stable_sort(bundles.begin(), bundles.end(),
                   [](const Bundle& a, const Bundle& b) { return a.seconds > b.seconds; });
  std::vector<double> load(shard.count, 0);
  std::vector<std::size_t> mine;
  for (const Bundle& bundle : bundles) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bundle.seconds;
    if (least - load.begin() == static_cast<std::ptrdiff_t>(shard.index) - 1)
      mine.insert(mine.end(), bundle.cases.begin(), bundle.cases.end());
  }
  std::sort(mine.begin(), mine.end());
  Plan cut;
  cut.suite = plan.suite;
  cut.seed = plan.seed;
  cut.unfit = plan.unfit;
  cut.unrelated = plan.unrelated;
  cut.cases.reserve(mine.size());
  for (const std::size_t index : mine) cut.cases.push_back(plan.cases[index]);
  return cut;
}

std::string plan_digest(const Plan& plan) {
  Sha256 hash;
  hash.update_field("qkcts-plan 1");
  hash.update_field(plan.suite);
  hash.update_number(plan.seed);
  hash.update_number(plan.cases.size());
  for (const PlannedCase& planned : plan.cases) {
    const qkcts_shape& s = planned.shape;
    hash.update_field(planned.slug);
    hash.update_field(canonical_json(planned.contract));
    hash.update_field(planned.family);
    hash.update_field(parameters(planned.format).name);
    for (const std::int64_t extent : {s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim, s.v_head_dim})
      hash.update_number(static_cast<std::uint64_t>(extent));
    hash.update_number(planned.seed);
    hash.update_number(planned.rows);
    hash.update_number(planned.profiles.size());
    for (const std::string& profile : planned.profiles) hash.update_field(profile);
    hash.update_number(planned.own_profiles.size());
    for (const auto& [name, text] : planned.own_profiles) {
      hash.update_field(name);
      hash.update_field(text);
    }
    hash.update_field(planned.together);
    hash.update_number(planned.relations.size());
    for (const PlannedRelation& relation : planned.relations) hash.update_field(relation.relation.slug);
  }
  return hash.finish();
}

}  // namespace qkcts

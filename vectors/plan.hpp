// SPDX-License-Identifier: Apache-2.0
// What is to be generated: a list of cases, written compactly as JSON (conformance/schemas/plan.schema.json).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"
#include "vectors/eps_sweep.hpp"
#include "vectors/own_profile.hpp"
#include "vectors/relation_member.hpp"

namespace qkcts {

struct PlannedCase {
  std::string slug;  // CONTRACT/FAMILY/FORMAT_BxHqxHkvxLqxLkxDxDv, then _sN for the N-th further seed
  Contract contract;
  std::string family;
  Format format = Format::binary32;
  qkcts_shape shape{};
  std::uint64_t seed = 0;             // from the seed of the plan and the slug
  std::uint32_t rows = 0;             // rows stored of each stage but output and lse; 0: all
  std::vector<std::string> profiles;  // budgets wanted; empty: every shipped profile of the format
  OwnProfiles own_profiles;           // of those that are not shipped
  std::set<std::string> allowed;      // coincidences that its group allows, with a reason
  bool fitting = false;               // of a group of whatever fits: that no profile judges it is no fault of the plan
  // Of a case that is made from another for a relation; null: drawn by its family. Then `family` names the relation.
  std::shared_ptr<const RelationMember> member;
  std::vector<PlannedRelation> relations;  // that are complete with this case
  std::string together;                    // cases of one name share relations, and so a shard; empty: alone
};

struct Plan {
  std::string suite;
  std::uint64_t seed = 0;
  std::vector<PlannedCase> cases;  // in the order of the plan, slugs unique
  struct Unfit {
    std::string slug, reason;
  };
  std::vector<Unfit> unfit;      // combinations that make no sense, if the overrides allow to leave them out
  std::vector<Unfit> unrelated;  // relations that do not hold under the contract of a case
};

// Changes of a plan from the command line, applied to every group.
struct PlanOverrides {
  bool has_seed = false;
  std::uint64_t seed = 0;
  bool skip_unfit = false;  // leave out what makes no sense instead of refusing the plan
};

// Throws InputError with the place of the first fault: schema, unknown names, shapes that do not fit, families that
// make no sense for a contract, slugs that occur twice.
Plan plan_from_json(std::string_view text, std::string_view origin, const PlanOverrides& overrides = {});

// Budgets of this profile as well, in every case of its format. Throws InputError if the plan has none.
void add_profile(Plan& plan, const NamedProfile& named);

std::vector<std::string> shipped_plans();
// A shipped suite by name, or a JSON file by its path. A shipped one in which two clauses coincide (coincidence.hpp),
// with no case to make up for it and no reason given, is refused.
Plan load_plan(const std::string& name_or_path, const PlanOverrides& overrides = {});

// A shipped contract by name, or a JSON file by its path.
Contract load_contract(const std::string& name_or_path);
// binary32, or f32 for short; nothing for what is no storage format.
std::optional<Format> plan_format(std::string_view name);

// "B,Hq,Hkv,Lq,Lk,D,Dv". Throws InputError.
qkcts_shape shape_from_text(std::string_view text);
std::string case_slug(const Contract& contract, std::string_view family, Format format, const qkcts_shape& shape,
                      std::uint32_t seed_index);
std::uint64_t case_seed(std::uint64_t plan_seed, std::string_view slug);

}  // namespace qkcts

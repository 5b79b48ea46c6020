// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "vectors/relation_clause.hpp"

namespace qkcts {
namespace {

std::string lower_case(std::string_view id) {
  std::string text(id);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// "norm.eps=1e-05" as a part of a slug: norm_eps_1e_05.
std::string as_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  return name;
}

std::string relation_slug(RelationKind kind, const std::string& drawn) {
  return fmt::format("{}_{}/{}", lower_case(row(kind).id), row(kind).name, drawn);
}

Contract renamed(const Contract& contract, const qkcts_contract& terms, std::string_view suffix,
                 std::string_view title) {
  Contract changed = contract;
  changed.terms = terms;
  changed.name += fmt::format("_{}", suffix);
  changed.title += fmt::format(", {}", title);
  return changed;
}

// Every stage that both contracts have, but for the projections, which no relation looks at.
StageSet common_stages(const PlannedCase& a, const PlannedCase& b) {
  return stages_of(a.contract.terms) & stages_of(b.contract.terms) &
         ~(bit(QKCTS_STAGE_Q_PROJ) | bit(QKCTS_STAGE_K_PROJ));
}

class Relating {
 public:
  Relating(Plan& plan, PlannedCase drawn) : plan_(plan), drawn_(std::make_shared<PlannedCase>(std::move(drawn))) {}

  void add(RelationKind kind) {
    if (kind == RelationKind::liveness) return add_liveness();
    const RelationRecipe& recipe = relation_recipe(kind);
    const std::string fault = recipe.fault(drawn_->contract.terms, drawn_->shape, drawn_->format);
    if (!fault.empty()) {
      plan_.unrelated.push_back({relation_slug(kind, drawn_->slug), fault});
    } else if (row(kind).cases == 1) {
      add_to_drawn(kind);
    } else {
      add_pair(recipe);
    }
  }

 private:
  void add_to_drawn(RelationKind kind) {
    PlannedCase& carrier = *std::find_if(plan_.cases.begin(), plan_.cases.end(),
                                         [&](const PlannedCase& p) { return p.slug == drawn_->slug; });
    PlannedRelation planned;
    planned.relation.slug = relation_slug(kind, drawn_->slug);
    planned.relation.kind = kind;
    planned.relation.cases = {drawn_->slug};
    carrier.relations.push_back(std::move(planned));
  }

  PlannedCase part(const RelationRecipe& recipe, Part which, const std::string& suffix) const {
    PlannedCase made = *drawn_;
    made.slug += "_" + suffix;
    made.family = row(recipe.kind).name;
    made.relations.clear();
    made.member = std::make_shared<RelationMember>(RelationMember{recipe.kind, which, drawn_});
    if (recipe.shape != nullptr) recipe.shape(made.shape, which);
    if (recipe.terms == nullptr) return made;
    qkcts_contract terms = made.contract.terms;
    recipe.terms(terms, which);
    if (which == Part::second)
      made.contract = renamed(made.contract, terms, row(recipe.kind).name, row(recipe.kind).name);
    return made;
  }

  void add_pair(const RelationRecipe& recipe) {
    const std::string name(row(recipe.kind).name);
    std::shared_ptr<const PlannedCase> first = drawn_;
    if (recipe.changes_first) {
      first = std::make_shared<PlannedCase>(part(recipe, Part::first, name + "_before"));
      plan_.cases.push_back(*first);
    }
    add_second(recipe.kind, part(recipe, Part::second, recipe.changes_first ? name + "_after" : name), first,
               relation_slug(recipe.kind, drawn_->slug), {});
  }

  void add_second(RelationKind kind, PlannedCase second, const std::shared_ptr<const PlannedCase>& first,
                  std::string slug, const std::string& neighbour) {
    PlannedRelation planned;
    planned.first = first;
    planned.relation.slug = std::move(slug);
    planned.relation.kind = kind;
    planned.relation.cases = {first->slug, second.slug};
    planned.relation.stages = kind == RelationKind::liveness ? bit(QKCTS_STAGE_OUTPUT) : common_stages(*first, second);
    if (kind == RelationKind::rotation_order)  // the vectors themselves stand before or behind the rotation
      planned.relation.stages &=
          ~(bit(QKCTS_STAGE_Q_NORM) | bit(QKCTS_STAGE_K_NORM) | bit(QKCTS_STAGE_Q_ROPE) | bit(QKCTS_STAGE_K_ROPE));
    planned.relation.entry = kind == RelationKind::batch_position ? drawn_->shape.batch - 1 : 0;
    planned.relation.neighbour = neighbour;
    second.relations.push_back(std::move(planned));
    plan_.cases.push_back(std::move(second));
  }

  void add_liveness() {
    const RelationRecipe& recipe = relation_recipe(RelationKind::liveness);
    for (const Neighbour& neighbour : ignored_clauses(drawn_->contract.terms, drawn_->shape, drawn_->format)) {
      const std::string name = as_name(neighbour.name);
      PlannedCase second = part(recipe, Part::second, "liveness_" + name);
      second.contract = renamed(drawn_->contract, neighbour.terms, name, neighbour.name);
      add_second(RelationKind::liveness, std::move(second), drawn_,
                 relation_slug(RelationKind::liveness, drawn_->slug) + "/" + name, neighbour.name);
    }
  }

  Plan& plan_;
  std::shared_ptr<const PlannedCase> drawn_;
};

}  // namespace

std::vector<RelationKind> relation_kinds(const std::string& name) {
  std::vector<RelationKind> kinds;
  std::string names;
  for (const RelationRow& row : relation_table()) {
    if (row.id == name || row.name == name) kinds.push_back(row.kind);
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", row.id, row.name);
  }
  if (kinds.empty()) throw InputError(fmt::format("there is no relation {}; there are: {}", name, names));
  return kinds;
}

void append_relations(Plan& plan, const std::vector<std::string>& names) {
  PlannedCase& drawn = plan.cases.back();
  drawn.together = drawn.slug;
  Relating relating(plan, drawn);
  for (const std::string& name : names)
    for (const RelationKind kind : relation_kinds(name)) relating.add(kind);
}

}  // namespace qkcts

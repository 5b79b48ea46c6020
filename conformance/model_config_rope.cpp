// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_config_rope.hpp"

#include <cmath>

#include <fmt/format.h>

namespace qkcts {
namespace {

// The object with the parameters of this kind of layer, and where it stands; empty place: there is none.
std::string parameters_place(const ConfigFields& fields, const RopeContext& context, const Json& rope) {
  if (fields.find("rope_parameters") != nullptr) {
    if (!fields.find("rope_parameters")->is_object()) fields.refuse("rope_parameters", "must be an object");
    if (rope.contains("by_kind") && rope.at("by_kind").contains(context.kind)) {
      std::string nested = "rope_parameters/" + rope.at("by_kind").at(context.kind).get<std::string>();
      if (fields.find(nested) != nullptr && !fields.find(nested)->is_object())
        fields.refuse(nested, "must be an object");
      if (fields.find(nested) != nullptr) return nested;
      for (const auto& [kind, key] : rope.at("by_kind").items())
        if (fields.find("rope_parameters/" + key.get<std::string>()) != nullptr)
          fields.refuse("rope_parameters", fmt::format("says nothing of layers of kind {}", context.kind));
    }
    return "rope_parameters";
  }
  const bool scaled = !rope.contains("scaled_kinds") || rope.at("scaled_kinds").contains(context.kind);
  if (fields.find("rope_scaling") != nullptr) {
    if (!fields.find("rope_scaling")->is_object()) fields.refuse("rope_scaling", "must be an object");
    if (scaled) return "rope_scaling";
  }
  return {};
}

class RopeReader {
 public:
  RopeReader(qkcts_contract& terms, ConfigFields& fields, const RopeContext& context)
      : terms_(terms),
        fields_(fields),
        context_(context),
        rope_(context.family.contains("rope") ? context.family.at("rope") : Json::object()),
        place_(parameters_place(fields, context, rope_)) {}

  void read() {
    read_theta();
    if (terms_.rope.order == QKCTS_ROPE_NONE) return;
    read_span();
    if (!place_.empty()) read_scaling();
  }

 private:
  std::string at(const char* key) const { return place_ + "/" + key; }

  double positive(const char* key, std::optional<double> standard = std::nullopt) {
    const std::optional<double> value = fields_.number(at(key));
    if (!value && !standard) fields_.refuse(at(key), "is missing");
    if (value && (!std::isfinite(*value) || *value <= 0)) fields_.refuse(at(key), "must be > 0");
    return value.value_or(standard.value_or(0));
  }

  void set_theta(const std::string& key, double theta) {
    if (!std::isfinite(theta) || theta <= 1) fields_.refuse(key, "must be > 1");
    terms_.rope.theta = theta;
    fields_.use(key, "rope.theta");
  }

  void read_theta() {
    // One theta per layer; 0: a layer without rotation.
    if (const Json* const list = fields_.find("layer_rope_theta")) {
      const auto index = static_cast<std::size_t>(context_.layer);
      if (!list->is_array() || index >= list->size() || !(*list)[index].is_number())
        fields_.refuse("layer_rope_theta", "must be a list with a number per layer");
      const double theta = (*list)[index].get<double>();
      fields_.use("layer_rope_theta", theta == 0 ? "rope.order" : "rope.theta");
      if (theta == 0) {
        terms_.rope = qkcts_rope{};
        terms_.rotation = qkcts_rotation{};
      } else {
        if (terms_.rope.order == QKCTS_ROPE_NONE) terms_.rope = {QKCTS_NORM_THEN_ROPE, QKCTS_HALF_SPLIT, 0, 0, theta};
        set_theta("layer_rope_theta", theta);
      }
      pass_over_names("layer_rope_theta says it");
      return;
    }
    // Released without rotation: the parameters are there, and theta is null.
    if (rope_.contains("null_theta") && !place_.empty() && fields_.has(at("rope_theta")) &&
        fields_.find(at("rope_theta")) == nullptr) {
      terms_.rope = qkcts_rope{};
      terms_.rotation = qkcts_rotation{};
      fields_.use(at("rope_theta"), "rope.order");
    }
    if (terms_.rope.order == QKCTS_ROPE_NONE) return pass_over_names("this layer does not rotate");
    const bool local = rope_.contains("local") && rope_.at("local").at("kind") == context_.kind;
    const std::string name =
        local ? rope_.at("local").at("key").get<std::string>() : rope_.value("theta", std::string("rope_theta"));
    if (!place_.empty() && fields_.find(at("rope_theta")) != nullptr) {
      set_theta(at("rope_theta"), *fields_.number(at("rope_theta")));
    } else if (const Json* const list = fields_.find(name); list != nullptr && list->is_array()) {
      const auto index = static_cast<std::size_t>(context_.layer);
      if (index >= list->size() || !(*list)[index].is_number()) fields_.refuse(name, "has no number for this layer");
      set_theta(name, (*list)[index].get<double>());
    } else if (const std::optional<double> theta = fields_.number(name)) {
      // The class of such a model brings a theta of its own together with its scaling, and then ignores this key.
      if (place_.empty() && terms_.rotation.scaling != QKCTS_SCALING_NONE && *theta != terms_.rope.theta)
        fields_.refuse(name, fmt::format("without rope_scaling beside it; the class then uses {}", terms_.rope.theta));
      set_theta(name, *theta);
    }
    pass_over_names("of layers of another kind, or said elsewhere");
  }

  void pass_over_names(const char* why) {
    for (const char* const key : {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor",
                                  "rope_local_base_freq", "partial_rotary_factors", "rotary_pct"})
      if (terms_.rope.order == QKCTS_ROPE_NONE || !place_.starts_with(key)) late_.emplace_back(key, why);
    if (rope_.contains("by_kind"))
      for (const auto& [kind, key] : rope_.at("by_kind").items())
        if (kind != context_.kind) late_.emplace_back("rope_parameters/" + key.get<std::string>(), "other layers");
    if (terms_.rope.order == QKCTS_ROPE_NONE) settle_names();
  }

  void settle_names() {
    for (const auto& [key, why] : late_) fields_.pass_over(key, why);
  }

  // R = the part of a head that turns, rounded down as the classes do.
  void read_span() {
    double share = rope_.value("partial", 1.0);
    if (rope_.contains("partial_by_kind")) share = rope_.at("partial_by_kind").value(context_.kind, share);
    std::string source;
    const auto take = [&](const std::string& key, const std::optional<double>& value) {
      if (!value) return;
      share = *value;
      source = key;
    };
    if (rope_.contains("lanes"))
      if (const auto lanes = fields_.number(rope_.at("lanes").get<std::string>()))
        take(rope_.at("lanes"), *lanes / static_cast<double>(context_.head_dim));
    take("rotary_pct", fields_.number("rotary_pct"));
    take("partial_rotary_factor", fields_.number("partial_rotary_factor"));
    if (const Json* const list = fields_.find("partial_rotary_factors")) {
      const auto index = static_cast<std::size_t>(context_.layer);
      if (!list->is_array() || index >= list->size() || !(*list)[index].is_number())
        fields_.refuse("partial_rotary_factors", "must be a list with a number per layer");
      take("partial_rotary_factors", (*list)[index].get<double>());
    }
    if (!place_.empty()) take(at("partial_rotary_factor"), fields_.number(at("partial_rotary_factor")));
    if (!(share > 0) || share > 1)
      fields_.refuse(source.empty() ? "partial_rotary_factor" : source, "must lie in (0, 1]");
    // There every pair has an angle, and the share says for how many of them it is not 0: a parameter of the scaling.
    const bool proportional = type() == "proportional";
    const auto lanes =
        proportional ? context_.head_dim : static_cast<std::int64_t>(static_cast<double>(context_.head_dim) * share);
    if (lanes < 2 || lanes % 2 != 0)
      fields_.refuse(source.empty() ? "head_dim" : source,
                     fmt::format("{} of {} lanes would turn, and they turn in pairs", lanes, context_.head_dim));
    terms_.rope.rotated = lanes == context_.head_dim ? 0 : static_cast<std::uint32_t>(lanes);
    if (!source.empty()) fields_.use(source, proportional ? "rope.factor" : "rope.rotated");
    share_ = share;
    settle_names();
  }

  std::string type() const {
    if (place_.empty()) return "default";
    for (const char* const key : {"rope_type", "type"})
      if (const auto text = fields_.text(at(key))) return *text;
    return "default";
  }

  void allow(std::initializer_list<const char*> keys) {
    const Json& object = *fields_.find(place_);
    for (const auto& [key, value] : object.items()) {
      if (value.is_null() || fields_.seen(at(key.c_str()))) continue;
      bool known = false;
      for (const char* const name : keys) known = known || key == name;
      if (rope_.contains("also"))
        for (const Json& name : rope_.at("also")) known = known || key == name;
      if (!known) fields_.refuse(at(key.c_str()), fmt::format("is not understood beside rope_type {}", type()));
      fields_.use(at(key.c_str()), "rope.scaling");
    }
    fields_.use(place_, "rope.scaling");
  }

  void read_scaling() {
    qkcts_rotation& rotation = terms_.rotation;
    const qkcts_rotation before = rotation;
    rotation = qkcts_rotation{};
    rotation.sense = before.sense;
    rotation.layout = before.layout;
    rotation.angles = before.angles;
    std::string name = type();
    if (rope_.contains("same_as_default"))
      for (const Json& other : rope_.at("same_as_default"))
        if (other == name) name = "default";
    if (rope_.contains("alpha") && (name == "dynamic" || name == "xdrope") && fields_.find(at("alpha")) != nullptr) {
      rotation.scaling = QKCTS_SCALING_NTK;
      rotation.factor = positive("alpha");
      return allow({"rope_type", "type", "rope_theta", "alpha", "factor", "beta_fast", "beta_slow", "mscale",
                    "mscale_all_dim", "mrope_section", "xdrope_section"});
    }
    if (name == "default" || name == "mrope") {
      allow({"rope_type", "type", "rope_theta", "mrope_section", "mrope_interleaved"});
    } else if (name == "linear") {
      rotation.scaling = QKCTS_SCALING_LINEAR;
      rotation.factor = positive("factor");
      allow({"rope_type", "type", "rope_theta", "factor", "mrope_section"});
    } else if (name == "dynamic") {
      read_dynamic();
    } else if (name == "yarn") {
      read_yarn();
    } else if (name == "llama3") {
      rotation.scaling = QKCTS_SCALING_LLAMA3;
      rotation.factor = positive("factor");
      rotation.low = positive("low_freq_factor");
      rotation.high = positive("high_freq_factor");
      rotation.original_length = original_length();
      allow({"rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
             "original_max_position_embeddings"});
    } else if (name == "proportional") {
      rotation.scaling = QKCTS_SCALING_PROPORTIONAL;
      rotation.factor = share_;
      if (positive("factor", 1.0) != 1) fields_.refuse(at("factor"), "beside rope_type proportional must be 1");
      allow({"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor"});
    } else {
      fields_.refuse(fields_.has(at("rope_type")) ? at("rope_type") : at("type"),
                     "is no known scaling; there are: default, linear, dynamic, yarn, llama3, proportional");
    }
  }

  double trained_length() {
    const std::optional<double> length = fields_.number("max_position_embeddings");
    if (!length || *length < 1) fields_.refuse("max_position_embeddings", "must be given beside this scaling");
    fields_.use("max_position_embeddings", "rope.scaling");
    return *length;
  }

  double original_length() {
    if (fields_.find(at("original_max_position_embeddings")) != nullptr)
      return positive("original_max_position_embeddings");
    return trained_length();
  }

  // The frequencies depend on the longest sequence: the contract holds them for one length.
  void read_dynamic() {
    const double trained = trained_length();
    const double factor = positive("factor");
    const double length = std::max(trained, static_cast<double>(context_.length.value_or(0)));
    if (length > trained) {
      terms_.rotation.scaling = QKCTS_SCALING_NTK;
      terms_.rotation.factor = factor * length / trained - (factor - 1);
    }
    allow({"rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings"});
    fields_.use(place_, length > trained ? fmt::format("rope.factor for {} positions", length)
                                         : fmt::format("none up to {} positions (--length N for more)", trained));
  }

  void read_yarn() {
    qkcts_rotation& rotation = terms_.rotation;
    rotation.scaling = QKCTS_SCALING_YARN;
    rotation.original_length = original_length();
    rotation.factor =
        fields_.find(at("factor")) != nullptr ? positive("factor") : trained_length() / rotation.original_length;
    rotation.high = positive("beta_fast", 32.0);
    rotation.low = positive("beta_slow", 1.0);
    rotation.untruncated = fields_.flag(at("truncate")).value_or(true) ? 0 : 1;
    const auto mscale = [&](double weight) {
      return rotation.factor <= 1 ? 1.0 : 0.1 * weight * std::log(rotation.factor) + 1.0;
    };
    const std::optional<double> given = fields_.number(at("attention_factor"));
    const double numerator = fields_.number(at("mscale")).value_or(0);
    const double denominator = fields_.number(at("mscale_all_dim")).value_or(0);
    if (given)
      rotation.attention_factor = positive("attention_factor");
    else if (numerator != 0 && denominator != 0)
      rotation.attention_factor = mscale(numerator) / mscale(denominator);
    else
      rotation.attention_factor = mscale(1);
    allow({"rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings", "attention_factor",
           "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", "finetuned"});
  }

  qkcts_contract& terms_;
  ConfigFields& fields_;
  const RopeContext& context_;
  Json rope_;
  std::string place_;
  double share_ = 1;  // of a head that turns
  std::vector<std::pair<std::string, std::string>> late_;
};

}  // namespace

void read_rope(qkcts_contract& terms, ConfigFields& fields, const RopeContext& context) {
  RopeReader(terms, fields, context).read();
}

}  // namespace qkcts

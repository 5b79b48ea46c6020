// SPDX-License-Identifier: Apache-2.0
// A contract from the configuration file of a model (config.json of Hugging Face transformers or diffusers).
//
// What a family of models reads from its configuration is data (conformance/model_families/): a contract per kind of
// layer, and for each key the clause that it sets. A key that nobody has described is not passed over if its name
// speaks of attention: the file is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {

struct ModelConfigRequest {
  std::optional<std::int64_t> layer;  // none: the first layer that the table of families has a contract for
  std::string section;  // an object of the file, or a part of the model, else refused; empty: the usual one
  std::optional<std::int64_t> length;  // longest sequence, for dynamic frequency scaling; none: as trained
};

struct ModelConfigField {
  std::string path;   // "rope_parameters.rope_theta"
  std::string value;  // as JSON
  std::string use;    // the clause that it set, or why it was passed over
};

struct ModelConfigContract {
  Contract contract;
  std::string model_type;
  std::string base;  // the shipped contract whose clauses hold where the file says nothing
  std::int64_t layer = 0;
  std::string kind;                             // "full", "sliding", ...
  std::string layers;                           // one line on the layers of the other kinds; empty if all are alike
  std::vector<ModelConfigField> used, ignored;  // sorted by path
  std::vector<std::string> left_out;            // what the model does beside the contract
};

// Throws InputError "ORIGIN: /place: reason" for what is no configuration, unknown or not understood.
ModelConfigContract contract_from_config(std::string_view text, std::string_view origin,
                                         const ModelConfigRequest& request = {});

// Every model_type (diffusers: _class_name) of the table that has a contract; those that are known and lack a clause
// are left out.
std::vector<std::string> configurable_model_types();

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// The configurations written out for the tests of model_config (testdata/model_config_*.json), and what is said of one.
#ifndef QKCTS_CONFORMANCE_WRITTEN_CONFIG_HPP
#define QKCTS_CONFORMANCE_WRITTEN_CONFIG_HPP

#include <map>
#include <string>
#include <vector>

#include "conformance/json.hpp"
#include "conformance/model_config.hpp"

namespace qkcts {

struct WrittenConfig {
  Json config;
  ModelConfigRequest request;
  std::string contract;                        // shipped
  std::map<std::string, std::string> differs;  // field -> its value in the derived contract
  Json heads;                                  // [query, key/value, lanes]; null: not looked at
  std::string about;
};

// A number by its value, whatever its notation.
std::string plain_value(const Json& value);

std::vector<WrittenConfig> written_configs();

// Why the configuration is refused, or "accepted".
std::string refusal(const Json& config, const ModelConfigRequest& request = {});

}  // namespace qkcts

#endif  // QKCTS_CONFORMANCE_WRITTEN_CONFIG_HPP

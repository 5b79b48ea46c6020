// SPDX-License-Identifier: Apache-2.0
#include "conformance/written_config.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "conformance/file.hpp"

namespace qkcts {

std::string plain_value(const Json& value) {
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<WrittenConfig> written_configs() {
  std::vector<WrittenConfig> all;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(QKCTS_SOURCE_DIR "/conformance/testdata"))
    if (entry.path().stem().string().starts_with("model_config_")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    for (const Json& entry : parse_json(read_text_file(file), file)) {
      WrittenConfig row;
      row.config = entry.at("config");
      row.contract = entry.at("contract");
      if (entry.contains("layer")) row.request.layer = entry.at("layer").get<std::int64_t>();
      if (entry.contains("length")) row.request.length = entry.at("length").get<std::int64_t>();
      row.request.section = entry.value("section", "");
      row.heads = entry.value("heads", Json());
      if (entry.contains("differs"))
        for (const auto& [field, value] : entry.at("differs").items()) row.differs[field] = plain_value(value);
      row.about =
          std::filesystem::path(file).stem().string() + ": " + row.contract + " " + row.config.dump().substr(0, 90);
      all.push_back(row);
    }
  return all;
}

std::string refusal(const Json& config, const ModelConfigRequest& request) {
  try {
    contract_from_config(config.dump(), "c.json", request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace qkcts

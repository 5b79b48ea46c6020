// SPDX-License-Identifier: Apache-2.0
// Every name in a corpus file, once. docs/vector_format.md is the normative text.
#pragma once

#include <cstdint>
#include <string_view>

namespace qkcts::schema {

constexpr std::string_view format_name = "qkcts-vectors";
// A file has the smallest version that knows all of its contracts: format_version.hpp.
constexpr std::uint32_t first_version = 1, latest_version = 4;
constexpr std::string_view precision_policy =
    "expected = roundTiesToEven(z), proven; |z - (value_hi + value_lo/256 ulp(value_hi))| <= 2^-9 ulp(value_hi)";

// Groups of the root.
constexpr const char* contracts = "contracts";
constexpr const char* cases = "cases";
constexpr const char* shards = "shards";        // only in a master file, which links to the cases of other files
constexpr const char* profiles = "profiles";    // only where a case is judged by a profile that is not shipped
constexpr const char* relations = "relations";  // only where there are some

// Groups of a case.
constexpr const char* inputs = "inputs";
constexpr const char* stages = "stages";
constexpr const char* separation = "separation";  // absent where no neighbour could be compared, and before version 4

// Datasets of a stage. rows is absent where every row is stored, rule and trust where all their elements are 0.
constexpr const char* rows = "rows";
constexpr const char* expected = "expected";
constexpr const char* value_hi = "value_hi";
constexpr const char* value_lo = "value_lo";
constexpr const char* budget = "budget";
constexpr const char* rule = "rule";
constexpr const char* trust = "trust";

// Datasets of separation.
constexpr const char* separation_value = "value";
constexpr const char* separation_place = "place";

// Attributes.
namespace attribute {
constexpr const char* format = "format";  // of the root, of a case and of every dataset
constexpr const char* format_version = "format_version";
constexpr const char* generator_version = "generator_version";
constexpr const char* precision_policy = "precision_policy";
constexpr const char* suite = "suite";
constexpr const char* seed = "seed";                // of the root and of a case
constexpr const char* shard = "shard";              // of the root: "2/4", only in the file of a shard
constexpr const char* plan_digest = "plan_digest";  // beside it: SHA-256 of the whole plan
constexpr const char* file = "file";                // of a group of /shards
constexpr const char* digest = "digest";            // of the root, of a contract and of a case
constexpr const char* json = "json";                // of a contract and of a profile
constexpr const char* contract = "contract";        // of a case; marks a group as one
constexpr const char* family = "family";
constexpr const char* description = "description";
constexpr const char* shape = "shape";                    // B, Hq, Hkv, Lq, Lk, D, Dv
constexpr const char* first_position = "first_position";  // of row 0 of cos and sin
constexpr const char* profiles = "profiles";
constexpr const char* entropy = "entropy";  // minimum, median, maximum over the rows with a visible key
constexpr const char* p_max = "p_max";
constexpr const char* score_max = "score_max";
constexpr const char* jacobian = "jacobian";      // from version 4 on, which it marks
constexpr const char* neighbours = "neighbours";  // of separation: names along its first axis
constexpr const char* dimensions = "dimensions";  // of every dataset: the names of its axes
}  // namespace attribute

constexpr std::string_view rows_dimension = "rows";
constexpr std::string_view profile_dimension = "profile";

// Limits that a reader holds every file to.
constexpr std::uint64_t largest_case_bytes = std::uint64_t{512} << 20;
constexpr std::uint64_t most_cases = 20000;
constexpr std::uint32_t most_shards = 512;  // of a master file: all of them are open at once
constexpr int deepest_slug = 8;
constexpr std::size_t longest_slug = 200;
constexpr std::size_t longest_neighbour = 200;

}  // namespace qkcts::schema

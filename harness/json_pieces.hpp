// SPDX-License-Identifier: Apache-2.0
// Long JSON documents, written piece by piece with one space for each level, as Json::dump(1) would write them whole.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "conformance/growing_file.hpp"
#include "conformance/json.hpp"

namespace qkcts {

using JsonSink = std::function<void(const Json& item)>;

// Items of a list that stands so many levels deep, one after another as `write` hands them on.
void write_json_list(const TextSink& sink, std::size_t level, const std::function<void(const JsonSink& sink)>& write);

// Members that are written when their turn comes, in place of what the object holds under their keys.
using LateMembers = std::map<std::string, std::function<void(std::size_t level)>>;
void write_json_object(const TextSink& sink, std::size_t level, const Json& object, const LateMembers& late);

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// Every name in a request or result file, once. docs/adapter_abi.md, "Exchange files", is the normative text. What is
// not here is named and laid out as in a corpus (vectors/schema.hpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace qkcts::exchange {

constexpr std::string_view requests_format = "qkcts-requests";
constexpr std::string_view results_format = "qkcts-results";
constexpr std::uint32_t version = 1;

// Attributes.
constexpr const char* corpus_digest = "corpus_digest";    // of both roots, but of those of a command
constexpr const char* description = "description";        // of the root of results: describe() as JSON
constexpr const char* fields = "fields";                  // of a contract: field path -> value, as JSON
constexpr const char* by_claim = "by_claim";              // of a contract: paths that an adapter must declare
constexpr const char* stages = "stages";                  // of a request: names of the stages asked for
constexpr const char* request_digest = "request_digest";  // of a case in both files; marks it in results
constexpr const char* implementation = "implementation";  // of a case in results: what really ran
constexpr const char* outcome = "outcome";                // of a case in results; absent: "ok"
constexpr const char* message = "message";                // beside another outcome

// The only case in the request of a command. It has no name of its own: nothing can be looked up by it.
constexpr const char* nameless_case = "case";

}  // namespace qkcts::exchange

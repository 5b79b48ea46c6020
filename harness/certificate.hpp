// SPDX-License-Identifier: Apache-2.0
// A certificate: what a run says of an implementation, in a form that anybody can judge again. docs/certification.md
//
// What it claims is a function of the run record and of what was laid down before the run, so that `certify` and
// `verify-certificate` cannot come to different claims from the same outputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/run_record.hpp"

namespace qkcts {

// The part of a certificate that is drawn for it alone.
inline constexpr const char* fresh_suite = "fresh";

struct CertifiedCorpus {
  std::string suite, digest;
  std::size_t cases = 0;
};

// Laid down before the first case runs.
struct CertificateTerms {
  std::vector<CertifiedCorpus> corpora;         // released suites, then the fresh one
  std::string joined_digest;                    // of all of them as one corpus
  std::vector<std::string> contracts, formats;  // globs and names; both empty: whatever describe() declares
  std::string profile;                          // --profile, else empty
  std::string description;                      // describe(), canonical JSON
  std::string adapter, adapter_sha256;          // as typed; of the library, or of a command and its files
  std::string nonce;
  bool nonce_given = false;                 // else it was drawn here, which no reviewer need believe
  std::uint64_t seed = 0;                   // of the fresh part: follows from the two before
  std::vector<std::string> fresh_left_out;  // cases that could not be drawn anew, with the reason
  int repeat = 1;
  std::string known_failures;  // canonical JSON of --known-failures, else empty
  Json machine, suite;         // machine_json(), suite_json()
};

// The first 8 bytes, read as one number with the most significant first, of SHA-256(file || nonce); of a command
// SHA-256(adapter_digest || nonce).
std::uint64_t fresh_seed(const AdapterSpec& adapter, const std::string& nonce);

Json to_json(const CertificateTerms& terms);
CertificateTerms terms_from_json(const JsonAt& at);

// The machine beyond what run.json says: extensions of the processor, driver, distribution.
Json certified_machine_json();
// Version, commit and state of the source tree that this program was built from, its compiler, its own SHA-256.
Json certifying_suite_json(const std::string& version);

// Does the case lie in what was declared?
bool in_scope(const CertificateTerms& terms, const AdapterDescription& description, const GoldenCase& outline);

// Suite of each case, by name.
using SuiteOfCase = std::map<std::string, std::string>;

// title, scope, levels, conforms, suspicious, counts, known failures, the rewrites that the theorem covers.
Json certificate_claims(const RunRecord& record, const CertificateTerms& terms, const SuiteOfCase& suites);

// summary.md; `certificate` holds claims and terms.
std::string certificate_summary(const Json& certificate);

// Section "What the theorem covers" of docs/budgets.md.
std::string theorem_text();

}  // namespace qkcts

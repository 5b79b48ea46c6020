// SPDX-License-Identifier: Apache-2.0
// The corpora of a certificate in one folder, and one corpus of all of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/certificate.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/manifest.hpp"

namespace qkcts::cli {

struct CertificateCorpus {
  std::string folder;  // that holds SUITE.h5 of each, and joined.h5
  std::vector<CertifiedCorpus> corpora;
  SuiteOfCase suites;
  std::set<std::string> in_scope;  // cases of joined.h5
  std::string joined_digest;

  std::string file(const std::string& name) const { return folder + "/" + name + ".h5"; }
  std::string joined() const { return file("joined"); }
};

// SUITE.h5 in the folder: already there, one of the given files, in the folder that QKCTS_CORPORA names, beside the
// program, or generated. Its digest is that of the manifest. Throws InputError.
// Every file is the corpus of one of the suites; throws InputError naming the one that is not.
void require_of_suites(const std::vector<std::string>& files, const std::vector<ReleasedSuite>& suites);
void place_released(CertificateCorpus& corpus, const ReleasedSuite& suite, const std::vector<std::string>& given);

// Which cases are to be drawn anew: an eighth of those in scope, at least four if there are so many, at most 64, as the
// seed picks them.
std::vector<std::string> chosen_for_fresh(const CertificateCorpus& corpus, const CertificateTerms& terms,
                                          const AdapterDescription& description);

// fresh.h5 is there: joins all, and finds what is in scope.
void join_all(CertificateCorpus& corpus, const CertificateTerms& terms, const AdapterDescription& description);

// A link, or a copy where there can be none. Throws WriteError.
void place_file(const std::string& from, const std::string& to);

}  // namespace qkcts::cli

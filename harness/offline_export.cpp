// SPDX-License-Identifier: Apache-2.0
#include "harness/offline_export.hpp"

#include <algorithm>
#include <vector>

#include <fnmatch.h>

#include "harness/exchange_requests.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/file_replacement.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

bool selected(const ExportSelection& selection, const GoldenCase& outline) {
  const std::vector<std::string>& profiles = outline.profiles;
  if (!selection.profile.empty() && std::find(profiles.begin(), profiles.end(), selection.profile) == profiles.end())
    return false;
  return (stages_of(outline.input.contract.terms) & selection.stages) != 0 &&
         fnmatch(selection.case_glob.c_str(), outline.input.slug.c_str(), 0) == 0;
}

}  // namespace

std::size_t export_requests(const std::string& corpus, const ExportSelection& selection, const std::string& path) {
  check_untrusted_corpus(corpus);
  const CorpusReader reader(corpus);
  std::vector<std::string> slugs;
  for (const std::string& slug : reader.slugs())
    if (selected(selection, reader.outline(slug))) slugs.push_back(slug);
  if (slugs.empty()) return 0;
  FileReplacement target(path);
  RequestWriter requests(target.temporary(), path, reader.info().digest);
  for (const std::string& slug : slugs) {
    GoldenCase golden = reader.read(slug);
    const StageSet stages = stages_of(golden.input.contract.terms) & selection.stages;
    requests.add({std::move(golden.input), stages});
  }
  requests.close();
  target.commit();
  return slugs.size();
}

}  // namespace qkcts

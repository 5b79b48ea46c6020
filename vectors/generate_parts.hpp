// SPDX-License-Identifier: Apache-2.0
// The finished cases of a generation that is not at its end: a folder of one corpus file per case, so that after a
// kill at any moment everything in it is whole, and checked like any corpus before it is taken up again.
//
//   FILE.part/origin.json   what is generated, by which program: nothing else may take up the cases
//             N.h5          the N-th case of the plan, a corpus of its own
//             N.json        why it was refused, which profiles were left out, the relations that it completes
//             whole.h5      the file itself, as far as it got; always begun anew
//             lock          held by the program that works here
#pragma once

#include <optional>
#include <string>

#include "vectors/generate_workers.hpp"

namespace qkcts {

struct PartsOrigin {
  std::string program, plan_digest, shard;
};

class CaseParts {
 public:
  // Makes the folder, or takes up what lies there. Throws InputError if that comes from another plan or program or is
  // something else, WriteError if it cannot be made or another program works there.
  CaseParts(std::string folder, const PartsOrigin& origin);
  ~CaseParts();
  CaseParts(const CaseParts&) = delete;
  CaseParts& operator=(const CaseParts&) = delete;

  std::string place_of_the_whole() const { return folder_ + "/whole.h5"; }
  // Any thread, each index once. Empty if the case is not there, or is damaged: then it is computed again.
  std::optional<CaseOutcome> load(std::size_t index, const PlannedCase& planned) const;
  void keep(std::size_t index, const PlannedCase& planned, CaseOutcome& outcome) const;  // fills golden.digest

 private:
  std::string file(std::size_t index, const char* ending) const;

  std::string folder_;
  int lock_ = -1;
};

// The file is whole: its folder goes, unless somebody put something else there.
void remove_parts(const std::string& folder);

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// The group /relations of a file, as far as it can be checked without its cases.
#pragma once

#include <vector>

#include "vectors/case_digest.hpp"
#include "vectors/hdf5_file.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

// Sorted by slug; empty if the file has no such group. Each text is canonical and each digest that of its text; what
// the texts say of cases is not checked. Throws InputError "FILE: /object: reason".
std::vector<Relation> read_relations(const Hdf5Input& file);
std::vector<DigestEntry> relation_digests(const std::vector<Relation>& relations);

class CorpusReader;
// Every relation names cases of the corpus and fits them. Throws InputError.
void check_relations(const CorpusReader& corpus);

}  // namespace qkcts

// SPDX-License-Identifier: Apache-2.0
// A master file: one corpus in several files. It holds no case, but an external link to each, so that other programs
// see one tree; and the name and digest of each file, by which this program opens the files itself. It follows no
// link. docs/vector_format.md, "Master files"
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "vectors/corpus_reader.hpp"
#include "vectors/hdf5_file.hpp"

namespace qkcts {

// Which of the shards holds what: the first one, of what several hold.
using Homes = std::map<std::string, std::size_t>;

struct MergedShards {
  CorpusContents contents;
  Homes contracts, profiles, cases, relations;
};

// What the shards say together. Throws InputError "FILE: reason" where they contradict one another.
MergedShards merged_shards(const std::vector<CorpusReader>& shards);

struct OpenMaster {
  std::vector<CorpusReader> shards;
  MergedShards merged;
};

// Opens the files of a master and checks them against its digests, and its links against the files. Throws InputError.
OpenMaster open_master(const Hdf5Input& file, const CorpusInfo& info);

// A master of several suites is called by all of them, "core+edge", which no suite of a plan can be.
bool is_part_of_suite(const std::string& suites, const std::string& suite);

// The file of that name beside the master: a regular file, no link, nowhere else. Throws InputError "WHERE: reason".
std::string shard_path(const std::string& master, const std::string& name, const std::string& where);

// The version of a master is that of its newest shard, at least the one that knows masters.
std::uint32_t master_version(const std::vector<CorpusReader>& shards);

}  // namespace qkcts

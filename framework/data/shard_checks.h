// What is checked of shards before a run reads them: every byte and every token, once per process and file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/data_identity.h"
#include "framework/data/shard.h"

namespace mulligan {

// What shards are opened for.
struct ShardUse {
  DataSplit split = DataSplit::train;
  std::int64_t vocabulary = kMaxVocabulary;  // model.vocabulary
  std::string tokenizer_file = {};           // data.tokenizer; "": none
  std::string tokenizer_sha256 = {};         // of that file
  std::int64_t pieces = 0;                   // of that tokenizer
};

struct CheckedShards {
  ShardSetIdentity identity;
  std::string tokenizer_sha256;   // that made them, as the manifests next to them say; "": none says
  std::vector<FileStamp> stamps;  // of each file, as it was when it was read
};

// Reads the files in parallel (about 1.5 GB/s per core where the CPU hashes in hardware) and checks,
// in this order:
// - header and length of each (Shard);
// - where a manifest of prepared data lies next to a shard: that it lists the shard, on the side of the split
//   that is asked for (validation shards are never trained on; training shards may be scored), with its token
//   count and sha256, and that the tokenizer is the one that made it;
// - that no token is beyond the tokenizer's pieces or, without a tokenizer, the vocabulary.
// Shards without a manifest (published sets) are taken as they are; their digests are compared from then on.
// Throws data_error naming the shard, what was expected and found, and the key to set; config_error when
// model.vocabulary is smaller than the tokenizer that made the shards.
CheckedShards check_shards(const std::vector<std::filesystem::path>& files, const ShardUse& use);

// Throws config_error when a model of `vocabulary` cannot tell all pieces of the tokenizer apart, and if `exact`, when it
// has ids that the tokenizer has no pieces for. Else a sentence about such ids, or "". Padding is legal: these ids never
// occur, so they can only cost probability. Beyond the next multiple of 128 the sentence starts with "warning: ".
std::string check_vocabulary(std::int64_t vocabulary, std::int64_t pieces, const std::string& tokenizer,
                             bool exact = false);

}  // namespace mulligan

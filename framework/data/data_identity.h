// DataIdentity: which tokenizer and which tokens something is of, by digests.
//
// It travels with weights (metadata), checkpoints (manifest), artifacts (manifest) and results (result.json),
// and is compared wherever one of them meets data again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace mulligan {

struct ShardIdentity {
  std::string name;  // file name without folder: data may move
  std::uint64_t tokens = 0;
  std::string sha256;  // of the whole file
  bool operator==(const ShardIdentity&) const = default;
};

// Shards in the order in which they are read.
struct ShardSetIdentity {
  std::uint64_t tokens = 0;
  std::string sha256;                 // over the shards' digests, in order; "": nothing is known
  std::vector<ShardIdentity> shards;  // left out in artifacts, where every byte counts
  bool operator==(const ShardSetIdentity&) const = default;
};

// All digests are lower-case sha256; "" stands for what was not there or is not known.
struct DataIdentity {
  std::string tokenizer_sha256;   // of the SentencePiece model file
  std::string byte_table_sha256;  // of the bytes that each token counts
  std::string packing;            // how validation is cut into rows, in words
  ShardSetIdentity train, validation;
  bool operator==(const DataIdentity&) const = default;
  bool empty() const { return *this == DataIdentity{}; }
};

// With the digest over the shards' digests.
ShardSetIdentity shard_set(std::vector<ShardIdentity> shards);

nlohmann::ordered_json to_json(const DataIdentity& data);
std::string to_json_text(const DataIdentity& data);
// The same without the lists of shards, for where bytes are dear.
DataIdentity without_shards(DataIdentity data);
// The reverse; shards may be absent. Throws data_error; `source` names the file in sentences.
DataIdentity data_identity_from_json(const nlohmann::ordered_json& json, const std::string& source);
DataIdentity data_identity_from_text(const std::string& json, const std::string& source);

// How data that is scored differs from the validation of the run that made the weights, in words: their scores may not be
// compared. "": it does not. One side may say nothing of rows.
std::string validation_difference(const DataIdentity& weights, const DataIdentity& now);

// What holds trained weights: its name in sentences ("the weights 'runs/a/weights.safetensors'") and what it
// says of its data.
struct DataOrigin {
  std::string name;
  DataIdentity data;
};

// Throws data_error when both sides know their tokenizer and they differ, or when `now` has one to count
// bytes with (tokenizer_file is not empty) and the other side is silent: the score would look like any other.
// `tokenizer_file` is what data.tokenizer names.
void require_same_tokenizer(const DataOrigin& origin, const DataIdentity& now,
                            const std::string& tokenizer_file);

// Throws data_error unless the training shards are those of `origin`, in the same order; names the first that
// is not. Silent where one side knows no digests.
void require_same_training_shards(const DataOrigin& origin, const ShardSetIdentity& now);

// Throws data_error naming a shard that is in both sets: what is trained on must not be scored,
// and the reverse.
void require_apart(const ShardSetIdentity& train, const ShardSetIdentity& validation);

}  // namespace mulligan

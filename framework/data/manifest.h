// manifest.json of a prepared data folder: what is in it, how it was made, and the digests to check it by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mulligan {

struct ShardRecord {
  std::string file;  // relative to the manifest
  std::uint64_t tokens = 0;
  std::string sha256;
};

// One side of the split.
struct SplitRecord {
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;  // with one BOS per document
  std::uint64_t bytes = 0;   // UTF-8 bytes of the tokens' text
  std::vector<ShardRecord> shards;
};

struct Manifest {
  std::string source;      // where the text came from, in words
  std::string split_rule;  // how documents were divided, in words
  std::string tokenizer_file;
  std::string tokenizer_sha256;
  bool tokenizer_trained = false;  // on this corpus' training documents; otherwise it was given
  int vocabulary = 0;
  int bos_id = 1;
  std::uint64_t duplicates_dropped = 0;
  std::uint64_t empty_dropped = 0;
  SplitRecord train;
  SplitRecord validation;
  std::string
      validation_text_file;  // the validation documents' text, joined without separator: `bytes` bytes
  std::string validation_text_sha256;
};

// Writes folder/manifest.json atomically.
void save_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// Reads folder/manifest.json (or the file itself). Throws data_error when it is missing, malformed, or names
// a file outside its folder.
Manifest load_manifest(const std::filesystem::path& path);

// The manifest in `folder`, or nothing where there is none or one of another kind (data sets that others publish
// bring files of that name, too). Throws data_error for one of this kind that is malformed, and for one that is no
// JSON object.
std::optional<Manifest> find_manifest(const std::filesystem::path& folder);

// Loads the manifest and checks every shard's header, length and token count, and with `digests` the sha256
// of shards and tokenizer. Throws data_error naming the first file that differs.
Manifest verify_manifest(const std::filesystem::path& path, bool digests = true);

}  // namespace mulligan

// manifest.json of a prepared data folder: what is in it, how it was made, and the digests to check it by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/text_overlap.h"

namespace mulligan {

struct ShardRecord {
  std::string file;  // relative to the manifest
  std::uint64_t tokens = 0;
  std::string sha256;
  std::string bytes_file = {}, bytes_sha256 = {};  // its byte side table (side_table.h); "": it has none
};

// One side of the split.
struct SplitRecord {
  const ShardRecord* find(const std::filesystem::path& shard) const;  // by file name; null: not listed
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;  // with one BOS per document
  // Of the tokens' text; under a text transform of the original documents.
  std::uint64_t bytes = 0;
  std::vector<ShardRecord> shards;
  std::uint64_t source_bytes = 0;  // of the same documents as they were given
};

struct FileDigest {
  std::string file;  // relative to the manifest
  std::string sha256;
  bool operator==(const FileDigest&) const = default;
};

// What happened to the documents' text on its way to the tokens.
struct TextRecord {
  bool cleaned = false;                 // by clean_text(), because --clean was given
  std::string normalization;            // of the tokenizer trained here; empty: a given tokenizer's own
  bool kept = false;                    // every byte of every document that is not left out is in the tokens
  std::uint64_t documents_cleaned = 0;  // those that cleaning changed
  std::uint64_t documents_changed_by_tokenizer = 0;  // those whose tokens spell another text
  std::uint64_t documents_with_nul = 0;              // kept, but perhaps no text
  std::uint64_t binary_dropped = 0;                  // left out for a NUL byte
  // Of the text transform that the tokens went through; "": none. `bytes` of a split are then of the original text.
  std::string transform;
  std::uint64_t hidden_left_out = 0;  // files and folders
  std::uint64_t paths_left_out = 0;   // others: links that lead nowhere or to what was read before, devices
  std::uint64_t links_followed = 0;
  std::uint64_t bad_lines_dropped = 0;  // of JSON Lines
  std::uint64_t unread_left_out = 0;    // documents without a token
  // How the files were read: whole, or as JSON Lines; of these the ones whose names do not say it.
  std::uint64_t plain_files = 0, json_files = 0, json_lines = 0, json_by_contents = 0;
  std::uint64_t overlap_left_out = 0;  // of training, for a passage of a validation document
  // A line {"document": ..., "change": ...} for each of these and each duplicate and empty document; no name: there
  // was none.
  FileDigest changes;
  bool operator==(const TextRecord&) const = default;
};

// One document, or hidden file or folder, that is not in the tokens as it was given.
struct DocumentChange {
  std::string document;
  std::string change;
};

// What an ablation of symbols (ablate.h) did to one side.
struct AblatedSplit {
  std::uint64_t documents = 0;                                                           // changed
  std::uint64_t bytes_before = 0, bytes_after = 0, tokens_before = 0, tokens_after = 0;  // of all documents
};
struct AblationRecord {
  std::vector<std::string> classes;
  std::string mode, mask;
  double probability = 1;
  std::uint64_t seed = 0;
  std::vector<std::string> domains;            // globs over names of documents; empty: all
  std::map<std::string, std::uint64_t> taken;  // symbols by class
  AblatedSplit train;
  std::optional<AblatedSplit> validation;  // none: left as it was
  // Whether bits per byte of the validation text can be held against those without the ablation: it is the
  // same text, or masked, and then validation.bytes_before is what to divide by.
  bool comparable = true;
};

// How much of the training text is symbols, and how alike its lines are (encode_documents.h).
struct SymbolRecord {
  std::map<std::string, double> per_1000_tokens;  // by class
  std::uint64_t lines = 0;                        // that were looked at
  std::uint64_t templates = 0;                    // different ones among them
};

struct Manifest {
  std::vector<FileDigest> files() const;  // all but the manifest itself
  std::string source;                     // where the text came from, in words
  std::string split_rule;                 // how documents were divided, in words
  std::string tokenizer_file;
  std::string tokenizer_sha256;
  bool tokenizer_trained = false;  // on this corpus' training documents; otherwise it was given
  int vocabulary = 0;
  int bos_id = 1;
  std::uint64_t duplicates_dropped = 0;
  std::uint64_t empty_dropped = 0;
  SplitRecord train;
  SplitRecord validation;
  // the validation documents' text, joined without separator: `bytes` bytes; under a text transform the
  // original documents as JSON Lines, of `bytes` bytes but for white space at their ends
  std::string validation_text_file;
  std::string validation_text_sha256;
  TextRecord text;
  std::optional<AblationRecord> ablation;
  std::optional<TextOverlap> overlap;   // of both sides; none: prepared with another measure
  std::optional<SymbolRecord> symbols;  // of the documents before an ablation; none: not asked for
};

// Writes folder/manifest.json atomically.
void save_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// Reads folder/manifest.json (or the file itself). Throws data_error when it is missing, malformed, or names
// a file outside its folder.
Manifest load_manifest(const std::filesystem::path& path);

// The manifest in `folder`, or nothing where there is none or one of another kind (data sets that others
// publish bring files of that name, too). Throws data_error for one of this kind that is malformed, and for
// one that is no JSON object.
std::optional<Manifest> find_manifest(const std::filesystem::path& folder);

// The manifests next to files, each read once.
class NearManifests {
 public:
  // Null: there is none of this kind. Throws as find_manifest does.
  const Manifest* next_to(const std::filesystem::path& file);

 private:
  std::map<std::filesystem::path, std::optional<Manifest>> read_;  // by folder
};

// Throws data_error unless the file, whose digest is `found`, is the one that the manifest lists.
void require_digest(const std::filesystem::path& file, const std::string& found, const std::string& listed);

// Loads the manifest and checks every shard's header, length and token count, the sha256 of all files, and the
// totals: documents and tokens against the shards, bytes against the tokenizer's table, vocabulary and BOS against
// the tokenizer. Throws data_error naming the first file or figure that differs.
Manifest verify_manifest(const std::filesystem::path& path);

}  // namespace mulligan

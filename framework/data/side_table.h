// SideTable: the bytes of each token of a stream, from files next to the token shards.
//
// Where a text transform (text_transform.h) or the tokenizer's normalisation changes the text, a token's piece does not
// say how many bytes of the original it stands for. fineweb_val_bytes_000000.bin holds them: a shard (shard.h) whose
// tokens are the counts, cut as the token shard of that number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/manifest.h"
#include "framework/data/side_bytes.h"
#include "framework/data/text_source.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

// The side tables of validation shards: those that `pattern` (data.validation_bytes) names, else the ones
// that the shards' manifests list or that lie next to them under the published names; empty where no shard has
// one. Throws data_error where their number is not that of the shards.
std::vector<std::filesystem::path> find_side_tables(const std::string& pattern,
                                                    const std::vector<std::filesystem::path>& shards);

// The manifest next to the shards; none where there is none, or of several sets.
std::optional<Manifest> manifest_of(const std::vector<std::filesystem::path>& shards);
// What the manifests next to shards say of their original text.
struct StatedOriginal {
  bool known = false;       // a manifest of ours lists each of the shards
  bool plain = false;       // and its text is untransformed
  bool in_tables = false;   // and a byte side table for each
  bool kept = false;        // the tokens spell it to the byte
  std::uint64_t bytes = 0;  // of the original text of the sides that the shards belong to; 0: not recorded
  bool whole = false;       // the shards are all of a side of one set
};
StatedOriginal stated_original(const std::vector<std::filesystem::path>& shards);
// The original validation documents that the shards' manifest names; "" where none or several sets are.
std::filesystem::path original_documents(const std::vector<std::filesystem::path>& shards);

// Throws data_error where `tokens`, which piece tables are to count, hold symbols of a text transform that
// stand for no text: each would count its own bytes. `shards` are named in the sentence.
void refuse_transform_symbols(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                              const std::vector<std::filesystem::path>& shards);

// Throws data_error where the table and the stream differ in length, or a BOS stands for bytes.
void require_fit(const SideTable& table, std::span<const std::uint16_t> tokens, int bos_id);

// A document may count this many times the bytes that its tokens decode to, and so many more; a whole set this
// many times. Normalisation takes away runs of spaces, invisible characters and accents written apart.
inline constexpr double kDocumentByteFactor = 2, kSetByteFactor = 1.05;
inline constexpr std::uint64_t kSpareBytes = 64;

// For tables that no original documents can be held against. Throws data_error for the first document, and for
// a set, that counts more than the bounds above.
void require_near_decoded(const SideTable& table, std::span<const std::uint16_t> tokens, int bos_id,
                          const Tokenizer& tokenizer);

// Encodes every original, compares the ids with the shards', and returns the bytes of the originals that each token
// stands for. Throws data_error where more than one in a hundred documents are others (versions of SentencePiece
// differ in some), or one of these counts more than the bound of a document by `bytes`, or originals are missing.
// Of a document that is another the sum is its original's, and within it `bytes` divides. A document that the stream's
// end cuts counts as far as it goes. Originals beyond the stream's documents are ignored; what stands before the first
// BOS is counted by `bytes`.
SideTable encode_originals(std::span<const std::uint16_t> tokens, int bos_id, const Tokenizer& tokenizer,
                           const ByteCounter& bytes, const TextSource& originals);

// Compares the counts of each document with its original: all of its bytes, or those that published tables count.
// Originals beyond the stream's documents are ignored. Throws data_error naming the first that differs
// or is missing.
void require_original_bytes(const SideTable& table, std::span<const std::uint16_t> tokens, int bos_id,
                            const Tokenizer& tokenizer, const TextSource& originals);

}  // namespace mulligan

// Validation shards held against the original documents that they come from, and their byte counts against what the
// tokens decode to.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/side_table.h"
#include "framework/data/text_source.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

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

}  // namespace mulligan

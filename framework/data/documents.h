// The documents of a token stream, their order for test-time training, and the windows they are scored in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/data/shard.h"

namespace mulligan {

// Tokens [start, start + length). The length includes the BOS of the following document, the target of this
// document's last token; the last document runs to the end of the stream.
struct Document {
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const Document&) const = default;
};

// Documents start at each BOS; tokens before the first BOS belong to none.
std::vector<Document> find_documents(std::span<const std::uint16_t> tokens, int bos_id = 1);

// Length of the stream cut to whole rows: floor((count - 1) / row_tokens) * row_tokens + 1 tokens, so that
// every row has its targets; 0 when there is not one whole row.
std::int64_t whole_rows_length(std::int64_t count, std::int64_t row_tokens);

// A group of documents adapted together.
struct DocumentBatch {
  int index = 0;               // number of the batch in ascending order of length
  std::vector<int> documents;  // slots, ascending by length
  bool operator==(const DocumentBatch&) const = default;
};

// Where the first document of a shard begins that begins in [from, until); nothing: there is no BOS.
std::optional<std::int64_t> first_document(const Shard& shard, int bos_id, std::int64_t from = 0,
                                           std::int64_t until = std::numeric_limits<std::int64_t>::max());
// Whether a document begins in any of the shards.
bool documents_begin(const std::vector<std::filesystem::path>& shards, int bos_id);

// Sorts the documents by length (stable), groups them by `batch_size` (the remainder holds the longest), and
// orders the groups by their longest document; groups of equal length keep their ascending order.
std::vector<DocumentBatch> batch_documents(std::span<const Document> documents, int batch_size,
                                           DocumentOrder order);

// The sorted subset max(1, round(count * fraction)) of 0..count-1 that the public script evaluates: Python's
// random.Random(seed).sample. Throws config_error for a fraction outside (0, 1] or count < 1.
std::vector<int> sample_documents(int count, double fraction, std::uint64_t seed);

// Chunk `index` of a document with `predicted` target tokens, and the context it is scored in.
struct ChunkWindow {
  std::int64_t window_start = 0;   // first input position of the window, in the document
  std::int64_t window_length = 0;  // at most the window size; the window ends where the chunk ends
  std::int64_t chunk_offset = 0;   // first scored position, in the window
  std::int64_t chunk_length = 0;
  bool operator==(const ChunkWindow&) const = default;
};

std::int64_t chunk_count(std::int64_t predicted, std::int64_t chunk_tokens);
ChunkWindow chunk_window(std::int64_t predicted, std::int64_t chunk_tokens, std::int64_t window_tokens,
                         std::int64_t index);

}  // namespace mulligan

// Which documents are scored in which batches, chunks and windows; and when the base model is trained.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/ttt_config.h"
#include "framework/data/documents.h"

namespace mulligan {

struct PlannedBatch {
  DocumentBatch batch;
  std::int64_t chunk_tokens = 0;
  std::int64_t chunks = 0;  // of its longest document
};

struct DocumentPlan {
  std::vector<Document> documents;    // all of the stream
  std::vector<PlannedBatch> queue;    // in the order of scoring; slots are numbers of `documents`
  std::int64_t chosen_documents = 0;  // in the queue

  const Document& document(int number) const { return documents[static_cast<std::size_t>(number)]; }
  // Targets of a document: its tokens but the first.
  std::int64_t targets(int number) const { return document(number).length - 1; }
};

// Documents without a target (a BOS at the end of the stream) are left out. Throws data_error when
// none is left.
DocumentPlan plan_documents(std::span<const std::uint16_t> tokens, int bos_id, const TttConfig& config);

// Tokens of the windows in which chunk `chunk` of a batch is scored: min((chunk + 1)
// * chunk_tokens, context_tokens).
std::int64_t window_context(const PlannedBatch& batch, std::int64_t chunk, std::int64_t context_tokens);

// Documents that have a window for chunk `chunk`: all that have tokens in it, which are the last of the
// batch, and where that saves programs some finished ones before them. One of 1, 2, 3, 4, 6, 8, 12, 16, 24,
// ... or the whole batch.
std::int64_t window_documents(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t chunk);

// Counts of scored documents after which the base model is trained: floor(prefix * (i + 1) / phases) for i =
// 0 ... phases - 1, where prefix_documents are no more than the `documents` of the queue. At most one
// training follows one batch.
std::vector<std::int64_t> phase_boundaries(const TttConfig& config, std::int64_t documents);

// A document that was scored.
struct ScoredDocument {
  int batch_index = 0, slot = 0, number = 0;
};
// The tokens of the first `boundary` documents by (batch_index, slot), one behind the other. Each ends with
// the BOS of its successor, so that BOS stands twice where two documents meet, as in the record's script.
std::vector<std::uint16_t> phase_tokens(std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                                        std::vector<ScoredDocument> scored, std::int64_t boundary);

}  // namespace mulligan

// Which documents are scored in which batches, chunks and windows; and when the base model is trained.
//
//   document  tokens from one BOS to the next BOS, which is its last target
//   batch     documents that are adapted together; the number of a batch is its position in the order of scoring
//   chunk     targets of a document that are scored, then trained on, at once
//   window    the tokens in which a chunk is scored; it ends where the chunk ends
//   lane      a chain of batches that inherit adapters: what one rank of the record's script does
//   stretch   the batches between two meetings of all lanes; a training of the base model ends it
//   turn      one chunk of a batch: score, book, plan, reveal, update
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/data/documents.h"

namespace mulligan {

struct PlannedBatch : DocumentBatch {  // documents: numbers in the stream
  std::int64_t chunk_tokens = 0;
  std::int64_t chunks = 0;  // of its longest document

  std::int64_t size() const { return std::ssize(documents); }
};

// Stream positions [first, last) of targets.
struct TargetRange {
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
};

struct DocumentPlan {
  std::vector<Document> documents;    // all of the stream
  std::vector<PlannedBatch> queue;    // in the order of scoring
  std::int64_t chosen_documents = 0;  // in the queue

  const Document& document(int number) const { return documents[static_cast<std::size_t>(number)]; }
  const PlannedBatch& batch(std::int64_t number) const { return queue[static_cast<std::size_t>(number)]; }
  std::int64_t batches() const { return std::ssize(queue); }
  std::int64_t targets(int number) const { return document(number).length - 1; }
  TargetRange range(int number) const;
  std::vector<TargetRange> ranges(const PlannedBatch& batch) const;  // of its documents
  // Those in one chunk; none where the document is finished.
  TargetRange range(const PlannedBatch& batch, int number, std::int64_t chunk) const;
};

// Documents without a target (a BOS at the end of the stream) are left out. Throws data_error if none is left.
DocumentPlan plan_documents(std::span<const std::uint16_t> tokens, int bos_id, const TttConfig& config);

// B consecutive windows of R tokens, T = B*R. Each scores C positions, N = B*C.
struct WindowShape {
  std::int64_t documents = 0;  // B
  std::int64_t context = 0;    // R
  std::int64_t scored = 0;     // C
  auto operator<=>(const WindowShape&) const = default;
  std::int64_t tokens() const { return documents * context; }
  std::int64_t positions() const { return documents * scored; }
};

// The windows of a chunk: of all documents that have tokens in it, which are the last of the batch. If that saves
// programs, some finished documents before them have windows too: up to 8, or one of 12, 16, 24, 32, ... or the whole
// batch.
WindowShape window_shape(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t chunk,
                         std::int64_t context_tokens);

// Counts of scored documents after which the base model is trained: floor(prefix * (i + 1) / phases) for i =
// 0 ... phases - 1, where prefix_documents are no more than the `documents` of the queue.
std::vector<std::int64_t> phase_boundaries(const TttConfig& config, std::int64_t documents);

// The tokens of the first `boundary` of the documents in `batches`, by ascending length, one after the other. Each ends
// with the BOS of its successor, so that BOS stands twice where two documents meet, as in the record's script.
std::vector<std::uint16_t> phase_tokens(std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                                        std::int64_t batches, std::int64_t boundary);

// A chunk of a batch: the tokens of its windows, and what scoring and training on it cost, in tokens of a forward pass.
struct PlannedChunk {
  std::int64_t queue = 0, chunk = 0, tokens = 0, cost = 0;
};
// All chunks of a plan, in an order that `purpose` draws.
std::vector<PlannedChunk> shuffled_chunks(const DocumentPlan& plan, std::int64_t context_tokens,
                                          const char* purpose);

// Chunks that are also scored without adaptation, by batch and chunk, for the gain: all of them; of a long text
// as many as take 1 % of the cost, but no fewer than 2^22 tokens of windows.
std::set<std::pair<std::int64_t, std::int64_t>> compared_chunks(const DocumentPlan& plan,
                                                                std::int64_t context_tokens);

// Which lane scores which batch, and when all lanes meet. A lane that is free takes the next batch. Which one is free
// follows from predicted costs, not from clocks. So the plan is the same for every number of processes.
struct LanePlan {
  struct Stretch {
    std::int64_t first = 0, end = 0;  // batches
    // It ends because so many documents were scored: then the base model is trained on as many. Lanes that
    // are at work then finish their batch, so that more may have been scored.
    std::optional<std::int64_t> boundary;
  };
  std::vector<Stretch> stretches;   // none is empty
  std::vector<std::int64_t> lanes;  // of each batch
  std::vector<bool> begins;         // whether the batch is the first of its lane in its stretch

  std::int64_t lane(std::int64_t queue) const { return lanes[static_cast<std::size_t>(queue)]; }
  bool begins_lane(std::int64_t queue) const { return begins[static_cast<std::size_t>(queue)]; }
  // The order in which one process works: stretch by stretch, lane by lane.
  std::vector<std::int64_t> order() const;
};

// `boundaries`: phase_boundaries; empty: the base model is never trained. At most one training follows one batch.
LanePlan plan_lanes(const DocumentPlan& plan, std::int64_t context_tokens,
                    const std::vector<std::int64_t>& boundaries, std::int64_t lanes);

}  // namespace mulligan

// Which documents are scored in which batches, chunks and windows; and when the base model is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "framework/config/adaptation.h"
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
// batch, and where that saves programs some finished ones before them. Up to 8, or one of 12, 16, 24, 32,
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
// The tokens of the first `boundary` documents by (batch_index, slot), one after the other. Each ends with
// the BOS of its successor, so that BOS stands twice where two documents meet, as in the record's script.
std::vector<std::uint16_t> phase_tokens(std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                                        std::vector<ScoredDocument> scored, std::int64_t boundary);

// LanePlan: which lane scores which batch of documents, and when all lanes meet.
//
// A lane is a chain of batches whose adapters are inherited from one to the next: what one rank of the
// record's script does. The batches form one queue; a lane that is free takes the next. Who is free when
// follows from predicted costs, not from clocks, so the plan is the same on every machine, and any number of
// processes can work through its lanes.

// Time of a batch on one device, in tokens of its windows: each chunk costs its windows' tokens, and a fixed
// amount for the launches that wait for each other.
std::int64_t predicted_cost(const DocumentPlan& plan, const PlannedBatch& batch, std::int64_t context_tokens);

// A chunk of a batch: what a forward pass over its windows costs in tokens, and what scoring and training on it do.
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

struct LanePlan {
  // The batches [first, end) of the queue, between two meetings of all lanes.
  struct Stretch {
    std::int64_t first = 0, end = 0;
    // It ends because so many documents were scored: then the base model is trained on as many. Lanes that
    // are at work then finish their batch, so that more may have been scored.
    std::optional<std::int64_t> boundary;
  };
  std::vector<Stretch> stretches;   // none is empty
  std::vector<std::int64_t> lanes;  // of each batch, by its position in the queue

  // The order in which one process works: stretch by stretch, lane by lane.
  std::vector<std::int64_t> order() const;
};

// `boundaries`: counts of scored documents after which the base model is trained, ascending
// (phase_boundaries); empty: never.
LanePlan plan_lanes(const DocumentPlan& plan, std::int64_t context_tokens,
                    const std::vector<std::int64_t>& boundaries, std::int64_t lanes);

// Numbers of the events at which adapters are drawn (AdapterDraws), counted along the queue, so that they
// depend on neither lanes nor ranks but for where the base model is trained.
struct DrawNumbers {
  std::vector<std::int64_t> stretches;  // of the adapters that every lane begins it with
  std::vector<std::int64_t> batches;    // by position in the queue, where the batch draws
};
// `draws`: whether a batch of the queue draws adapters.
DrawNumbers number_draws(const LanePlan& lanes, const std::function<bool(std::int64_t)>& draws);

}  // namespace mulligan

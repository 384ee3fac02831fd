// What a run of test-time training found, and its forms: in memory, between ranks, as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/base_training.h"
#include "framework/ttt/score_book.h"

namespace mulligan {

struct TttResult;

// What a run of test-time training found.
struct TttBatchReport {
  std::int64_t queue = 0;        // position in the order of scoring
  std::int64_t batch_index = 0;  // in ascending order of length
  std::int64_t documents = 0;
  std::int64_t longest_tokens = 0;  // targets of its longest document
  ScoreSums sums;                   // of this batch
  ScoreSums running;                // of all batches so far
  Comparison compared;              // of these, as far as they were scored without adaptation, too
  std::vector<AdapterNorm> norms;   // after its last update
  bool adapted = true;              // false after a fallback
  double seconds = 0;
};

// A batch that was scored, before what it adds up to is known: that waits for all batches before it.
struct TttPendingBatch {
  std::int64_t queue = 0;
  bool adapted = true;
  double seconds = 0;
  std::vector<AdapterNorm> norms;
};

struct TttPhaseReport {
  std::int64_t phase = 0;      // from 1
  std::int64_t documents = 0;  // trained on
  std::int64_t tokens = 0;     // of these documents, doubled BOS included
  std::vector<BaseStep> steps;
  double seconds = 0;
};

// Documents with [shortest, longest] targets.
struct TttLengthBin {
  std::int64_t shortest = 0, longest = 0, documents = 0;
  ScoreSums sums;
  Comparison compared;
};

// Chunks that were scored with other tokens after a cut, too (SuffixCheck).
struct TttChecks {
  TttCheck mode = TttCheck::off;
  bool repeats = true;  // the backend gives the same bits twice; else nothing is compared
  std::int64_t chunks = 0, all_chunks = 0;
  std::int64_t cuts = 0;  // of windows
  double share = 0;       // of the predicted cost

  // "2 of 23 chunks ...": a clause for people.
  std::string text() const;
};

struct TttReport {
  ScoreSums sums;           // of all scored documents
  Comparison compared;      // the same windows with adaptation and without; no tokens: not known
  ScoreSums untransformed;  // the same scores without the score transform; tokens is 0 where there is none
  std::int64_t documents = 0;
  std::vector<TttBatchReport> batches;
  std::vector<TttPhaseReport> phases;
  std::vector<TttLengthBin> bins;  // by powers of two, ascending, empty ones left out
  std::int64_t collapsed_at = -1;  // queue position of the batch after which the collapse was seen; -1: none
  bool fell_back = false;
  std::int64_t lanes = 1, ranks = 1;
  TttChecks checks;  // of all ranks
};

// Where test-time training stands between two batches of documents: all that the rest of it depends on.
struct TttStanding {
  std::vector<std::int64_t> done;        // scored batches, by position in the queue, in the order of scoring
  TttReport report;                      // reported batches and phases so far, collapse; no bins
  std::vector<TttPendingBatch> pending;  // batches that are done and not reported
  ScoreSums sums;                        // of all that was booked
  Comparison compared;                   // of the reported batches
  ScoreSums untransformed;               // of the same
  std::vector<float> losses;             // by stream position; of tokens without a score: 0
  std::uint64_t choices = 0;             // AdaptationRule::digest()
  std::vector<float> plain_losses;       // the same without the score transform; empty where there is none
  // Device tensors by name: adapters that the next batch inherits and, once it was trained, the base model.
  std::map<std::string, std::vector<std::byte>> tensors;
};

// What the ranks of a test-time training tell each other where all meet.

enum class TttEventKind { create, reset, score, book, plan, reveal, update, phase, collapse, fallback };
const char* event_name(TttEventKind kind);

struct TttMessage {
  struct Event {
    TttEventKind kind = TttEventKind::score;
    std::int64_t queue = -1, batch_index = -1, chunk = -1;
    std::vector<int> documents;
    std::string chosen;
  };
  std::vector<TttPendingBatch> batches;  // scored since the last meeting
  std::string invalid_reason;            // why its scores must not be used; empty: they may
  std::vector<Event> events;             // since the last meeting, in order; where somebody keeps them
};

std::string to_text(const TttMessage& message);
// Throws run_error where it is none.
TttMessage read_ttt_message(const std::string& text);

// A run of test-time training as JSON, with units in the names; numbers that are not finite become null.

using Json = nlohmann::ordered_json;

// The library writes doubles so that reading gives the same bits; what is not finite as null, which is read
// as NaN.
double json_number(const Json& json);
std::vector<AdapterNorm> read_norms(const Json& json);
Json norms_json(const std::vector<AdapterNorm>& norms);
Json pending_json(const TttPendingBatch& batch);
TttPendingBatch read_pending(const Json& json);

Json batch_json(const TttBatchReport& batch);
Json phase_json(const TttPhaseReport& phase);
Json length_bin_json(const TttLengthBin& bin);
// Both scores, and how the run went, without batches, phases and bins.
Json totals_json(const TttResult& result);

// Everything: the text of ttt_result.json.
std::string ttt_json(const TttResult& result);
// The same file of an invalid run: no score, and the reason.
std::string invalid_ttt_json(const std::string& reason);

}  // namespace mulligan

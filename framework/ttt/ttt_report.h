// What a run of test-time training found and where it stands; what it tells while it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/base_training.h"
#include "framework/ttt/score_book.h"

namespace mulligan {

// The names of members are those of the JSON (ttt_json.h).

struct TttBatchReport {
  std::int64_t queue = 0;  // the batch's number
  std::int64_t batch = 0;  // in ascending order of length
  std::int64_t documents = 0;
  std::int64_t longest_tokens = 0;    // targets of its longest document
  ScoreSums score;                    // of this batch
  ScoreSums running;                  // of all batches so far
  Comparison compared;                // of these, as far as they were scored without adaptation, too
  std::vector<AdapterNorm> adapters;  // after its last update
  bool adapted = true;                // false after a fallback
  double seconds = 0;
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
  std::int64_t shortest_tokens = 0, longest_tokens = 0, documents = 0;
  ScoreSums score;
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
  std::int64_t collapsed_at = -1;  // the batch after which the collapse was seen; -1: none
  bool fell_back = false;
  std::int64_t lanes = 1, ranks = 1;
  TttChecks checks;  // of all ranks
};

// Where test-time training stands between two batches of documents: all that the rest of it depends on.
struct TttStanding {
  std::vector<std::int64_t> done;                  // batches, in the order in which this rank scored them
  TttReport report;                                // as far as all batches before are scored
  std::map<std::int64_t, TttBatchReport> pending;  // scored, before all batches before them are
  std::uint64_t choices = 0;                       // AdaptationRule::digest()
  std::vector<float> losses;                       // by stream position; of tokens without a score: 0
  std::vector<float> plain_losses;  // the same without the score transform; empty where there is none
  // Device tensors by name: adapters that the next batch inherits and, once it was trained, the base model.
  std::map<std::string, std::vector<std::byte>> tensors;
};

enum class TttEventKind { create, reset, score, book, plan, reveal, update, phase, collapse, fallback };

// Something that happened, in order.
struct TttEvent {
  TttEventKind kind = TttEventKind::score;
  std::int64_t queue = -1, batch = -1, chunk = -1;  // batch: its number in ascending order of length
  std::vector<int> documents;                       // numbers in the stream: those it concerns
  std::string chosen;                               // of reset and plan: what the rule chose, as JSON
  AdapterSet* adapters = nullptr;                   // of a batch that this rank scores
  const TttPhaseReport* phase = nullptr;            // of phase
};

class TttListener {
 public:
  virtual ~TttListener() = default;
  virtual void on_event(const TttEvent&) {}
  virtual void on_batch(const TttBatchReport&) {}
};

}  // namespace mulligan

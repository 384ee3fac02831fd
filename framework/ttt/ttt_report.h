// What a run of test-time training found.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/sandbox.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/base_training.h"
#include "framework/ttt/score_book.h"

namespace mulligan {

struct TttBatchReport {
  std::int64_t queue = 0;        // position in the order of scoring
  std::int64_t batch_index = 0;  // in ascending order of length
  std::int64_t documents = 0;
  std::int64_t longest_tokens = 0;  // targets of its longest document
  ScoreSums sums;                   // of this batch
  ScoreSums running, reference;     // of all batches so far: with test-time training, and without (if known)
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
  ScoreSums sums, reference;
};

// Scores that were computed again with other tokens behind them (suffix_check.h), and stayed the same.
struct TttChecks {
  std::uint64_t seed = 0;
  std::int64_t turns = 0, all_turns = 0;  // checked, of so many
  std::int64_t scores = 0;                // comparisons
  std::int64_t cuts = 0;                  // scores that were made without their own token
  std::int64_t proposals = 0;             // of a score transform, made again
  bool full = false;                      // nothing was left out
  bool plugin_kernels = false;            // scores were made by kernels that plugins bring
  bool own_process = false;               // by a process that never had the real tokens (blind_checker.h)
  Confinement process;                    // of that one
  Confinement run;                        // of the one that scored

  TttChecks& operator+=(const TttChecks& other) {  // counts alone
    turns += other.turns;
    all_turns += other.all_turns;
    scores += other.scores;
    cuts += other.cuts;
    proposals += other.proposals;
    return *this;
  }
};

struct TttReport {
  ScoreSums sums, reference;  // of all scored documents; reference.tokens is 0 when no reference was given
  ScoreSums untransformed;    // the same scores without the score transform; tokens is 0 where there is none
  std::int64_t documents = 0;
  std::vector<TttBatchReport> batches;
  std::vector<TttPhaseReport> phases;
  std::vector<TttLengthBin> bins;  // by powers of two, ascending, empty ones left out
  std::int64_t collapsed_at = -1;  // queue position of the batch after which the collapse was seen; -1: none
  bool fell_back = false;
  std::int64_t lanes = 1, ranks = 1;
  TttChecks checks;  // of all ranks; the seed of rank 0, rank r has the number r above it
};

}  // namespace mulligan

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/core/error.h"
#include "framework/ttt/adapter_set.h"

namespace mulligan {

// SuffixCheck: while a run scores, some of its windows are scored again with other tokens behind a position,
// and the scores up to that position must be the same to the bit.
//
// It sees what a recording cannot show: kernels that plugins bring. Which turns are taken, where their windows
// are cut and what replaces the rest depends on a seed that is drawn from the system when the run starts and
// published when it has ended. The changed windows are scored by a process that never had the real ones
// (blind_checker.h). Without one they meet in the same process, half of them first, and a kernel that
// remembers what it answered before can deceive it.

// A run whose scores must not be used.
class VoidRun : public Error {
 public:
  explicit VoidRun(std::string reason) : Error(ExitCode::run_failed, std::move(reason)) {}
};

// A seed that nobody can know beforehand. Throws run_error where the system gives none.
std::uint64_t unpredictable_seed();

class SuffixCheck {
 public:
  // For a run of `turns` turns with `windows` windows together. `full`: every turn at every cut. Else each turn with a
  // chance of one in a hundred, in a short run such that sixteen are expected, at two cuts or more of each window: so
  // many that a run that reads ahead in one score of thirty is found with 99 percent, as far as windows have as many,
  // and about equally many in each. What was taken before says nothing of the turns to come.
  SuffixCheck(std::int64_t turns, std::int64_t windows, std::int64_t vocabulary, std::uint64_t seed,
              bool full = false);

  // One document's window among the tokens of a turn, and its scores among the losses.
  struct Window {
    std::size_t first_token = 0, first_score = 0;
    std::int64_t length = 0;        // tokens of the window
    std::int64_t chunk_offset = 0;  // its token at which the scored chunk starts
    std::int64_t chunk_length = 0;  // scored tokens; 0: none
  };
  // All windows of the turn, each with other tokens from a cut on.
  struct Pass {
    std::vector<std::int32_t> tokens;
    std::vector<std::size_t> scores;  // places among the losses that may not move
  };
  struct Sample {
    std::int64_t turn = 0;
    std::vector<Pass> passes;  // at different cuts
    bool first = false;        // in one process: the changed windows are scored before the real ones
  };
  // Counts a turn; nothing where it is not checked.
  std::optional<Sample> next(std::span<const std::int32_t> tokens, std::span<const Window> windows);
  // Throws VoidRun where a score that may not move differs. `changed` are the losses of pass.tokens.
  void compare(std::int64_t turn, const Pass& pass, std::span<const float> real,
               std::span<const float> changed) const;

  bool full() const { return full_; }
  std::uint64_t seed() const { return seed_; }
  std::int64_t all_turns() const { return turn_; }   // so far
  std::int64_t turns() const { return checked_; }    // that are checked, so far
  std::int64_t scores() const { return compared_; }  // comparisons, so far
  // Different places at which a window was cut: at each, the score before it was made without its own token.
  std::int64_t cuts() const { return cuts_; }

 private:
  std::int64_t passes_of(std::span<const Window> windows);

  std::int64_t windows_left_, every_, vocabulary_;
  std::uint64_t seed_;
  bool full_;
  std::int64_t turn_ = 0, checked_ = 0, compared_ = 0, cuts_ = 0;
};

// X such that reading ahead in one of X, wherever, is found with 99 percent by looking at `checked` of them.
double found_one_in(std::int64_t checked);

// A check of a plugin's adapters before anything is scored.

// Runs the longest window of `set` with random adapters on made-up tokens, changes the second halves of
// some documents, and compares: the losses of all other documents and of the unchanged halves must stay bit
// for bit the same. The sets of changed documents are such that one document's reading of any other is
// seen. Where the adapters' forward pass has kernels of a plugin, which the row guard (row_guard.h) knows
// nothing of, that is done for every window, and besides for every position p of each: with other tokens
// from p + 1 on, the losses up to p must stay the same. Throws config_error naming the plugin when a loss
// moves: its adapters would carry tokens that are not scored yet into scores. Leaves the adapters
// undefined; create() must follow.
void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin);

}  // namespace mulligan

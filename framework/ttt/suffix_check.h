// SuffixCheck: while a run scores, some of its windows are scored a second time with other tokens behind a
// position, and the scores up to that position must be the same to the bit.
//
// It sees what a recording cannot show: kernels that plugins bring. Which windows are taken, where they are
// cut and what replaces the rest depends on a seed that is drawn from the system when the run starts and
// published when it has ended, and half of them meet the changed window first, so that a kernel cannot
// prepare for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

// A run whose scores must not be used.
class VoidRun : public Error {
 public:
  explicit VoidRun(std::string reason) : Error(ExitCode::run_failed, std::move(reason)) {}
};

// A seed that nobody can know beforehand. Throws run_error where the system gives none.
std::uint64_t unpredictable_seed();

class SuffixCheck {
 public:
  // For a run of `turns` turns: one of every hundred is checked, of a short run four.
  SuffixCheck(std::int64_t turns, std::int64_t vocabulary, std::uint64_t seed);

  // One document's window among the tokens of a turn, and its scores among the losses.
  struct Window {
    std::size_t first_token = 0, first_score = 0;
    std::int64_t length = 0;        // tokens of the window
    std::int64_t chunk_offset = 0;  // its token at which the scored chunk starts
    std::int64_t chunk_length = 0;  // scored tokens; 0: none
  };
  struct Sample {
    std::vector<std::int32_t> tokens;  // of all windows, with other tokens behind a place of each
    std::vector<std::size_t> scores;   // places among the losses that may not move
    bool first = false;                // the changed windows are scored before the real ones
  };
  // Counts a turn; nothing where it is not checked.
  std::optional<Sample> next(std::span<const std::int32_t> tokens, std::span<const Window> windows);
  // Throws VoidRun where a score that may not move differs. `changed` are the losses of sample.tokens.
  void compare(const Sample& sample, std::span<const float> real, std::span<const float> changed);

  std::uint64_t seed() const { return seed_; }
  std::int64_t turns() const { return checked_; }    // that were checked so far
  std::int64_t scores() const { return compared_; }  // that were compared so far

 private:
  std::int64_t every_, vocabulary_;
  std::uint64_t seed_;
  std::int64_t turn_ = 0, checked_ = 0, compared_ = 0;
};

}  // namespace mulligan

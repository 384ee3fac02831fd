// Scores that read later tokens are found: before a run, by a probe of the plugin's adapters, and while it goes on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/document_plan.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {

// SuffixCheck: some chunks of a run are first scored with other tokens and targets after a cut in each window,
// and what stands before the cuts must be the same to the bit.
//
// It sees what a recording cannot show: kernels of plugins, and errors of this program. The choice of chunks,
// cuts and tokens follows from the plan alone. So all ranks and lanes, and a run that is continued, agree
// without a message.

// A run whose scores must not be used.
class InvalidRun : public Error {
 public:
  explicit InvalidRun(std::string reason) : Error(ExitCode::run_failed, std::move(reason)) {}
};

class SuffixCheck {
 public:
  // sampled: chunks are taken in a random order, each whose window tokens still fit into 1 % of the predicted
  // cost, at one cut in each window. full: all chunks at all cuts. `repeats`: whether the backend gives the
  // same bits twice; nothing can be compared without.
  SuffixCheck(TttCheck mode, bool repeats, const DocumentPlan& plan, std::int64_t context_tokens,
              std::int64_t vocabulary);

  // The scores before the cut of a window: [first, first + losses) among the losses. The target of the last
  // one is the first changed token, so of this one the normaliser alone stays, and what was proposed for it.
  struct Kept {
    std::size_t first = 0, losses = 0, normalisers = 0;
  };
  // All windows of the turn, each with other tokens and targets from a cut on.
  struct Pass {
    std::vector<std::int32_t> tokens, targets;
    std::vector<Kept> kept;
  };
  // What a pass gave, [N] each: losses, the logarithms of the softmax's denominators, and losses of proposed
  // tokens by number.
  struct Scores {
    std::vector<float> losses, normalisers;
    std::vector<std::vector<float>> proposed;
  };

  bool checks(std::int64_t queue, std::int64_t chunk) const { return taken_.contains({queue, chunk}); }
  // The passes that come before the real one. `windows`: one for each of shape.documents; without a chunk where the
  // document is finished.
  std::vector<Pass> passes(std::int64_t queue, std::int64_t chunk, const WindowShape& shape,
                           std::span<const ChunkWindow> windows, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> targets) const;
  // Throws InvalidRun where what stands before a cut differs.
  static void compare(std::int64_t queue, std::int64_t chunk, const Pass& pass, const Scores& real,
                      const Scores& changed);

  // Of the whole run.
  const TttChecks& summary() const { return summary_; }

 private:
  std::int64_t vocabulary_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> taken_;  // passes by batch and chunk
  TttChecks summary_;
};

// Runs the longest window of `set` with random adapters on made-up tokens, changes the second halves of
// some documents, and compares: the losses of all other documents and of the unchanged halves must stay the same to
// the bit. For any two documents one of the passes changes the first alone. If the adapters' forward pass has kernels of
// a plugin, which the row guard (row_guard.h) does not know, that is done for every window, and for every position of
// each: other tokens after it, the same losses up to it. Throws config_error naming the plugin. Leaves the adapters
// undefined; create() must follow.
void probe_causality(AdapterSet& set, const BaseModel& model, const TttPlugin& plugin);

}  // namespace mulligan

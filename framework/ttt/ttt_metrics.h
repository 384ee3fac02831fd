// TttMetrics: test-time training in metrics.jsonl, behind what training wrote there.
#pragma once

#include <optional>

#include "framework/report/json_lines_writer.h"
#include "framework/ttt/run_ttt.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

// One JSON object a line; S stands for {"loss_sum_nats", "tokens", "bytes", "loss_nats", "bpb"}, null where
// nothing was scored, bpb null where bytes are not counted:
//
// after each batch, in the order of scoring (queue counts from 0; batch is the number in ascending order of
// length; norms are Euclidean over all documents and taps, after the batch's last update):
//   {"event":"ttt_batch", "queue": 3, "batch": 12, "documents": 64, "longest_tokens": 812,
//    "score": S of the batch, "running": S of all batches so far,
//    "running_without": S of the same documents without test-time training,
//    "adapters": {"A": {"norm": |A|, "drift": |A - A0|}, "B": ...}, "adapted": false after a fallback,
//    "seconds"}
// after each training of the base model:
//   {"event":"ttt_phase", "phase": 1, "documents", "tokens", "seconds",
//    "steps": [{"lr", "loss_nats", "gradient_norm"}]}
// once, when the collapse detector fires:
//   {"event":"ttt_collapse", "queue", "running_bpb", "without_bpb", "margin_bpb", "fell_back"}
// at the end, by ascending length (the gain of a bin is without.bpb - score.bpb):
//   {"event":"ttt_length_bin", "shortest_tokens", "longest_tokens", "documents", "score": S, "without": S}
// last:
//   {"event":"ttt_result", "with_ttt": {"val_bpb", ...}, "without_ttt": {...}, "documents", "setup_seconds",
//    "collapsed_at_batch": null or queue, "fell_back"}
class TttMetrics : public TttListener {
 public:
  // Adds to `path`, where the lines of an earlier test-time training of the same run are left out; passes
  // everything on to `next` (may be null). With `continued` what was reported before that standing stays.
  // Throws run_error when the file cannot be written.
  TttMetrics(const std::filesystem::path& path, const TttConfig& config, TttListener* next,
             const std::optional<TttStanding>& continued = {});

  void on_event(const TttEvent& event) override;
  void on_batch(const TttBatchReport& batch) override;
  void on_phase(const TttPhaseReport& phase) override;
  // The lines that come last.
  void finish(const TttResult& result);

 private:
  JsonLinesWriter file_;
  const TttConfig& config_;
  TttListener* next_;
  ScoreSums running_, without_;  // after the last batch
};

}  // namespace mulligan

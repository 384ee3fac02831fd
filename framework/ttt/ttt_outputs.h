// Who listens to a run of test-time training: the terminal, metrics.jsonl, the audit log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "framework/report/json_lines.h"
#include "framework/report/run_log.h"
#include "framework/ttt/ttt_report.h"
#include "framework/ttt/ttt_scorer.h"
#include "framework/ttt/ttt_session.h"

namespace mulligan {

// A run of test-time training for people.

// "batch 3 of 20 (64 documents of up to 812 tokens): running val_bpb 1.0712, gain 0.0098, |A| 12.1
// drift 1.4, |B| 0.3".
std::string batch_text(const TttBatchReport& batch, std::size_t batches);
// One line per phase: tokens, steps, loss from first to last, seconds.
std::string phase_text(const TttPhaseReport& phase);
// "gain of test-time training: 0.12345 bits per byte ...".
std::string gain_text(const TttReport& report);
// The gain by document length as a table.
std::string bins_text(const TttReport& report);

// AuditLog: the order of scores and updates as a file, one JSON object per line.

// Throws config_error unless an audit log may be written at `path`: its name is a plain one that no file of a
// run has, and what lies there, if anything, is an earlier audit log.
void require_audit_file(const std::filesystem::path& path);

// {"sequence": 17, "event": "book", "queue": 3, "batch": 12, "chunk": 0, "documents": [5, 4, 12]}
// sequence counts from 0; queue is the position in the order of scoring, batch the number in ascending order
// of length; chunk and documents (numbers in the stream) are left out where they mean nothing. Events:
// create, reset (adapters), score, book, plan, reveal, update, phase (base model), collapse, fallback. Of reset and
// plan `chosen` has what the rule chose: {"keep": {"A": 1.0, "B": 0.0}, "keep_state": false} and {"steps": 1,
// "lr_factor": 1.0, "weights": [...]}, the latter of these documents, where one is not 1.
class AuditLog : public TttListener {
 public:
  // Starts the file anew, or keeps its lines of the batches `done`, by their places in the queue, where there
  // are any; and passes everything on to `next` (may be null). Throws run_error when the file cannot be made.
  AuditLog(const std::filesystem::path& path, TttListener* next, const std::vector<std::int64_t>& done = {});

  void on_event(const TttEvent& event) override;
  void on_batch(const TttBatchReport& batch) override;
  void on_phase(const TttPhaseReport& phase) override;

 private:
  std::int64_t sequence_ = 0;
  JsonLinesWriter file_;
  TttListener* next_;
};

// What people see of test-time training while it goes on: some twenty batches, every phase, the collapse, and
// how far it is.
class BatchLines : public TttListener {
 public:
  BatchLines(RunLog& log, const TttConfig& config) : log_(log), config_(config) {}
  // Begins; the first `done` of the batches that this rank scores were scored by an earlier process.
  void begin(const TttScorer& run, std::size_t done);
  // Ends, and clears what a terminal shows.
  void end() { progress_.reset(); }

  void on_batch(const TttBatchReport& batch) override;
  void on_phase(const TttPhaseReport& phase) override;
  void on_event(const TttEvent& event) override;

 private:
  RunLog& log_;
  const TttConfig& config_;
  const DocumentPlan* plan_ = nullptr;
  std::optional<Progress> progress_;       // in tokens
  std::map<std::int64_t, double> tokens_;  // of this rank's batches, by position in the queue
  std::int64_t under_way_ = -1;            // the batch
  double done_ = 0, in_batch_ = 0;         // tokens of finished batches, and of the one under way
};

// TttMetrics: test-time training in metrics.jsonl, after what training wrote there.

// One JSON object a line; S stands for {"loss_sum_nats", "tokens", "bytes", "loss_nats", "bpb"}, null where
// nothing was scored, bpb null where bytes are not counted:
//
// after each batch, in the order of scoring (queue counts from 0; batch is the number in ascending order of
// length; norms are Euclidean over all documents and taps, after the batch's last update):
//   {"event":"ttt_batch", "queue": 3, "batch": 12, "documents": 64, "longest_tokens": 812,
//    "score": S of the batch, "running": S of all batches so far,
//    "compared": {"with": S, "without": S} of the same windows with adaptation and without, all batches so far,
//    "adapters": {"A": {"norm": |A|, "drift": |A - A0|}, "B": ...}, "adapted": false after a fallback,
//    "seconds"}
// after each training of the base model:
//   {"event":"ttt_phase", "phase": 1, "documents", "tokens", "seconds",
//    "steps": [{"lr", "loss_nats", "gradient_norm"}]}
// once, when the collapse detector fires:
//   {"event":"ttt_collapse", "queue", "running_bpb", "without_bpb", "margin_bpb", "fell_back"}
// at the end, by ascending length (the gain of a bin is compared.without.bpb - compared.with.bpb):
//   {"event":"ttt_length_bin", "shortest_tokens", "longest_tokens", "documents", "score": S, "compared": {...}}
// last:
//   {"event":"ttt_result", "with_ttt": {"val_bpb", ...}, "without_ttt": {...}, "evaluation": {...}, "documents", "setup_seconds",
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
  Comparison compared_;  // after the last batch
};

}  // namespace mulligan

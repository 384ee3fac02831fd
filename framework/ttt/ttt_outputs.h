// What a run of test-time training writes: lines for people, the audit log, ttt_result.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/eval/evaluate.h"
#include "framework/report/json_lines.h"
#include "framework/report/run_log.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {

class TttScorer;
struct TttSection;

struct TttResult {
  std::string weights;         // what was scored, as the caller named it
  std::string weights_sha256;  // WeightOrigin::sha256
  std::string device;          // what computed it, as the backend describes itself
  // Before, and absent with on_collapse = "off": the evaluation of the same documents, and the windows of
  // test-time training without adaptation, of a long text some of them (compared_chunks). The gain is that of
  // report.compared. The seconds are those of both.
  std::optional<EvalResult> evaluation, without;
  EvalResult with;           // test-time training; seconds of scoring and training, without setup_seconds
  double setup_seconds = 0;  // planning and preparing the programs
  std::int64_t peak_device_memory_bytes = 0;  // that the backend had allocated at once
  TttReport report;
  nlohmann::ordered_json made;  // PlanCacheCounts of all ranks, the clock being that of scoring and training
};

// Throws config_error unless an audit log may be written at `path`: its name is a plain one that no file of a
// run has, and what lies there, if anything, is an earlier audit log.
void require_audit_file(const std::filesystem::path& path);

// The audit log: one JSON object per line, in the order of scores and updates.
//   {"sequence": 17, "event": "book", "queue": 3, "batch": 12, "chunk": 0, "documents": [5, 4, 12]}
// sequence counts from 0; queue is the position in the order of scoring, batch the number in ascending order
// of length; chunk and documents (numbers in the stream) are left out where they mean nothing. Events:
// create, reset (adapters), score, book, plan, reveal, update, phase (base model), collapse, fallback. Of reset and
// plan `chosen` has what the rule chose: {"keep": {"A": 1.0, "B": 0.0}, "keep_state": false} and {"steps": 1,
// "lr_factor": 1.0, "weights": [...]}, the latter of these documents, where one is not 1.
//
// ttt_result.json has the scores and these lists. S stands for {"loss_sum_nats", "tokens", "bytes", "loss_nats", "bpb"},
// null where nothing was scored, bpb null where bytes are not counted. Norms are Euclidean over all documents and taps.
//   batches, in the order of scoring:
//     {"queue": 3, "batch": 12, "documents": 64, "longest_tokens": 812,
//      "score": S of the batch, "running": S of all batches so far,
//      "compared": {"with": S, "without": S} of the same windows with adaptation and without, all batches so far,
//      "adapters": {"A": {"norm": |A|, "drift": |A - A0|}, "B": ...} after its last update,
//      "adapted": false after a fallback, "seconds"}
//   phases, trainings of the base model:
//     {"phase": 1, "documents", "tokens", "seconds", "steps": [{"lr", "loss_nats", "gradient_norm"}]}
//   length_bins, by ascending length (the gain of a bin is compared.without.bpb - compared.with.bpb):
//     {"shortest_tokens", "longest_tokens", "documents", "score": S, "compared": {...}}
class TttOutputs : public TttListener {
 public:
  // Each may be absent.
  struct Files {
    std::filesystem::path directory, audit;  // the directory of ttt_result.json
    RunLog* log = nullptr;
  };
  // The audit log starts anew, or continues with what was written before `continued`. Throws run_error if it cannot be
  // written.
  TttOutputs(const Files& files, const TttConfig& config, const TttStanding* continued = nullptr);

  // Between them a terminal shows how far the run is; the first `done` of this rank's batches were scored before.
  void begin(const TttScorer& run, std::size_t done);
  void end() { progress_.reset(); }
  void on_event(const TttEvent& event) override;
  void on_batch(const TttBatchReport& batch) override;
  // The result, for people and as ttt_result.json.
  void finish(const TttResult& result, const TttSection& section);

 private:
  void log_result(const TttResult& result, const TttSection& section);

  Files files_;
  const TttConfig& config_;
  std::optional<JsonLinesWriter> audit_;
  std::int64_t sequence_ = 0;  // of the audit log
  const DocumentPlan* plan_ = nullptr;
  std::optional<Progress> progress_;  // in tokens
};

}  // namespace mulligan

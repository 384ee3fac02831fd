// What people see of test-time training while it goes on: some twenty batches, every phase, the collapse, and
// how far it is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "framework/report/run_log.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

class BatchLines : public TttListener {
 public:
  BatchLines(RunLog& log, const TttConfig& config) : log_(log), config_(config) {}
  // Begins; the first `done` of the batches that this rank scores were scored by an earlier process.
  void begin(const TttRun& run, std::size_t done);
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

}  // namespace mulligan

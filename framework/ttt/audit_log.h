// AuditLog: the order of scores and updates as a file, one JSON object per line.
#pragma once

#include <filesystem>

#include "framework/report/json_lines_writer.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

// Throws config_error unless an audit log may be written at `path`: its name is a plain one that no file of a
// run has, and what lies there, if anything, is an earlier audit log.
void require_audit_file(const std::filesystem::path& path);

// {"sequence": 17, "event": "book", "queue": 3, "batch": 12, "chunk": 0, "documents": [5, 4, 12]}
// sequence counts from 0; queue is the position in the order of scoring, batch the number in ascending order
// of length; chunk and documents (numbers in the stream) are left out where they mean nothing. Events:
// create, reset (adapters), score, book, reveal, update, phase (base model), collapse, fallback.
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

}  // namespace mulligan

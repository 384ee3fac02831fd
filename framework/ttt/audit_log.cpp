#include "framework/ttt/audit_log.h"

#include <nlohmann/json.hpp>

namespace mulligan {

AuditLog::AuditLog(const std::filesystem::path& path, TttListener* next)
    : file_(path, JsonLinesWriter::Start::anew), next_(next) {}

void AuditLog::on_event(const TttEvent& event) {
  nlohmann::ordered_json line = {
      {"sequence", sequence_++}, {"event", event_name(event.kind)}, {"queue", event.queue}};
  if (event.batch_index >= 0) line["batch"] = event.batch_index;
  if (event.chunk >= 0) line["chunk"] = event.chunk;
  if (!event.documents.empty())
    line["documents"] = std::vector<int>(event.documents.begin(), event.documents.end());
  file_.write(line.dump());
  if (next_) next_->on_event(event);
}

void AuditLog::on_batch(const TttBatchReport& batch) {
  if (next_) next_->on_batch(batch);
}

void AuditLog::on_phase(const TttPhaseReport& phase) {
  if (next_) next_->on_phase(phase);
}

}  // namespace mulligan

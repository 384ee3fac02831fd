#include "framework/ttt/audit_log.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"

namespace mulligan {

AuditLog::AuditLog(const std::filesystem::path& path, TttListener* next)
    : path_(path), file_(std::fopen(path.c_str(), "w")), next_(next) {
  if (!file_) throw run_error("the audit log '{}' cannot be made: {}", path.string(), std::strerror(errno));
}

void AuditLog::on_event(const TttEvent& event) {
  nlohmann::ordered_json line = {
      {"sequence", sequence_++}, {"event", event_name(event.kind)}, {"queue", event.queue}};
  if (event.batch_index >= 0) line["batch"] = event.batch_index;
  if (event.chunk >= 0) line["chunk"] = event.chunk;
  if (!event.documents.empty())
    line["documents"] = std::vector<int>(event.documents.begin(), event.documents.end());
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) {
    throw run_error("the audit log '{}' cannot be written: {}", path_.string(), std::strerror(errno));
  }
  if (next_) next_->on_event(event);
}

void AuditLog::on_batch(const TttBatchReport& batch) {
  if (next_) next_->on_batch(batch);
}

void AuditLog::on_phase(const TttPhaseReport& phase) {
  if (next_) next_->on_phase(phase);
}

}  // namespace mulligan

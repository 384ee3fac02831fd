#include "framework/ttt/audit_log.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.h"
#include "framework/report/json_lines.h"
#include "framework/report/run_directory.h"

namespace mulligan {
namespace {

constexpr std::string_view audit_start = R"({"sequence":0,"event":)";

}  // namespace

void require_audit_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const std::string name = path.filename().string();
  const auto refuse = [&](const char* why) {
    return config_error("ttt.audit: '{}' cannot be the audit log: {}; choose another name.", name, why);
  };
  const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  if (!plain || name.front() == '.' || name.front() == '-') {
    throw refuse("a name is of letters, digits, _, - and ., and starts with none of the last two");
  }
  for (const fs::path& file : RunFiles{path.parent_path()}.all()) {
    if (file.filename() == name) throw refuse("a run's own file has that name");
  }
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (status.type() == fs::file_type::not_found) return;
  if (failed || status.type() != fs::file_type::regular)
    throw refuse("something that is not a regular file has that name");
  std::ifstream stream(path, std::ios::binary);
  std::string start(audit_start.size(), '\0');
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (stream.gcount() > 0 && start != audit_start)
    throw refuse("a file that is not an audit log has that name");
}

namespace {

// Lines that an earlier process wrote of the batches `done`.
std::int64_t keep_lines(const std::filesystem::path& path, const std::vector<std::int64_t>& done) {
  std::int64_t kept = 0;
  if (done.empty()) return kept;
  const std::set<std::int64_t> known(done.begin(), done.end());
  keep_json_lines(path, [&](const nlohmann::ordered_json& line, std::string_view) {
    const bool keep = known.contains(line.value("queue", std::int64_t{-1}));
    kept += keep ? 1 : 0;
    return keep;
  });
  return kept;
}

}  // namespace

AuditLog::AuditLog(const std::filesystem::path& path, TttListener* next,
                   const std::vector<std::int64_t>& done)
    : sequence_(keep_lines(path, done)),
      file_(path, done.empty() ? JsonLinesWriter::Start::anew : JsonLinesWriter::Start::append),
      next_(next) {}

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

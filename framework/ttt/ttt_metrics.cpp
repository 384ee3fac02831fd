#include "framework/ttt/ttt_metrics.h"

#include "framework/report/json_lines.h"
#include "framework/ttt/ttt_json.h"

namespace mulligan {
namespace {

// Leaves out what an earlier test-time training reported, except what this one continues.
const std::filesystem::path& prepared(const std::filesystem::path& path,
                                      const std::optional<TttStanding>& continued) {
  keep_json_lines(path, [&](const Json& event, std::string_view) {
    const std::string name = event_name(event);
    if (!name.starts_with("ttt_")) return true;
    if (!continued) return false;
    if (name == "ttt_phase")
      return event.value("phase", std::int64_t{0}) <=
             static_cast<std::int64_t>(continued->report.phases.size());
    const bool of_a_batch = name == "ttt_batch" || name == "ttt_collapse";
    return of_a_batch && event.value("queue", std::int64_t{-1}) <
                             static_cast<std::int64_t>(continued->report.batches.size());
  });
  return path;
}

std::string event_line(const char* name, const Json& fields) {
  Json event = {{"event", name}};
  event.update(fields);
  return event.dump();
}

}  // namespace

TttMetrics::TttMetrics(const std::filesystem::path& path, const TttConfig& config, TttListener* next,
                       const std::optional<TttStanding>& continued)
    : file_(prepared(path, continued), JsonLinesWriter::Start::append), config_(config), next_(next) {}

void TttMetrics::on_event(const TttEvent& event) {
  if (event.kind == TttEventKind::collapse) {
    file_.write(event_line("ttt_collapse", {{"queue", event.queue},
                                            {"running_bpb", running_.bpb()},
                                            {"without_bpb", without_.bpb()},
                                            {"margin_bpb", config_.collapse_margin},
                                            {"fell_back", config_.on_collapse == OnCollapse::fallback}}));
  }
  if (next_) next_->on_event(event);
}

void TttMetrics::on_batch(const TttBatchReport& batch) {
  running_ = batch.running;
  without_ = batch.reference;
  file_.write(event_line("ttt_batch", batch_json(batch)));
  if (next_) next_->on_batch(batch);
}

void TttMetrics::on_phase(const TttPhaseReport& phase) {
  file_.write(event_line("ttt_phase", phase_json(phase)));
  if (next_) next_->on_phase(phase);
}

void TttMetrics::finish(const TttResult& result) {
  for (const TttLengthBin& bin : result.report.bins)
    file_.write(event_line("ttt_length_bin", length_bin_json(bin)));
  file_.write(event_line("ttt_result", totals_json(result)));
}

}  // namespace mulligan

#include "framework/ttt/ttt_outputs.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.h"
#include "framework/report/json_lines.h"
#include "framework/report/run_directory.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {
namespace {

// Bits per byte, or nats per token where bytes are not counted.
double score(const ScoreSums& sums) {
  return sums.bytes > 0 ? sums.bpb() : sums.mean_loss_nats();
}
const char* score_name(const ScoreSums& sums) {
  return sums.bytes > 0 ? "val_bpb" : "val_loss";
}
double gain(const Comparison& compared) {
  return score(compared.without) - score(compared.with);
}

}  // namespace

std::string batch_text(const TttBatchReport& batch, std::size_t batches) {
  std::string text = fmt::format("batch {} of {} ({} documents of up to {} tokens): running {} {:.5f}",
                                 batch.queue + 1, batches, batch.documents, batch.longest_tokens,
                                 score_name(batch.running), score(batch.running));
  if (batch.compared.without.tokens > 0) text += fmt::format(", gain {:.5f}", gain(batch.compared));
  for (const AdapterNorm& norm : batch.norms) {
    text += fmt::format(", |{}| {:.4g} drift {:.4g}", norm.name, norm.norm, norm.drift);
  }
  return batch.adapted ? text : text + ", adapters off";
}

std::string phase_text(const TttPhaseReport& phase) {
  std::string text = fmt::format("phase {}: base model trained on {} documents ({} tokens), {} steps",
                                 phase.phase, phase.documents, phase.tokens, phase.steps.size());
  if (!phase.steps.empty()) {
    text +=
        fmt::format(", loss {:.5f} -> {:.5f}", phase.steps.front().loss_nats, phase.steps.back().loss_nats);
  }
  return text + fmt::format(", {:.1f} s", phase.seconds);
}

std::string gain_text(const TttReport& report) {
  const auto& [with, without] = report.compared;
  std::string text =
      fmt::format("gain:                       {} {:.5f}", score_name(with), gain(report.compared));
  if (with.tokens < report.sums.tokens)
    text += fmt::format(" (in a sample of {} tokens, with {:.5f})", with.tokens, score(with));
  return text;
}

std::string bins_text(const TttReport& report) {
  std::string text = fmt::format("{:>17} {:>10} {:>10} {:>12}", "document tokens", "documents", "tokens",
                                 score_name(report.sums));
  if (report.compared.without.tokens > 0) text += fmt::format(" {:>10} {:>10}", "without", "gain");
  for (const TttLengthBin& bin : report.bins) {
    text +=
        fmt::format("\n{:>17} {:>10} {:>10} {:>12.5f}", fmt::format("{} to {}", bin.shortest, bin.longest),
                    bin.documents, bin.sums.tokens, score(bin.sums));
    if (bin.compared.without.tokens > 0)
      text += fmt::format(" {:>10.5f} {:>10.5f}", score(bin.compared.without), gain(bin.compared));
  }
  return text;
}

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
  keep_json_lines(path, [&](const nlohmann::ordered_json& line) {
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
  if (!event.chosen.empty()) line["chosen"] = nlohmann::ordered_json::parse(event.chosen);
  file_.write(line.dump());
  if (next_) next_->on_event(event);
}

void AuditLog::on_batch(const TttBatchReport& batch) {
  if (next_) next_->on_batch(batch);
}

void AuditLog::on_phase(const TttPhaseReport& phase) {
  if (next_) next_->on_phase(phase);
}

namespace {

double tokens_of(const DocumentPlan& plan, std::int64_t queue) {
  std::int64_t tokens = 0;
  for (const int number : plan.queue[static_cast<std::size_t>(queue)].batch.documents)
    tokens += plan.targets(number);
  return static_cast<double>(tokens);
}

}  // namespace

void BatchLines::begin(const TttScorer& run, std::size_t done) {
  plan_ = &run.documents();
  ProgressPhase phase{.what = "test-time training", .unit = "tokens"};
  for (std::size_t i = 0; i < run.own_batches().size(); ++i) {
    const std::int64_t queue = run.own_batches()[i];
    const double tokens = tokens_of(*plan_, queue);
    tokens_[queue] = tokens;
    phase.total += tokens;
    if (i < done) done_ += tokens;
  }
  phase.done = done_;
  phase.plain_lines = false;  // the batches' own
  phase.ticks = true;         // the causality probes come first
  progress_.emplace(&log_, phase);
}

void BatchLines::on_batch(const TttBatchReport& batch) {
  const std::size_t batches = plan_->queue.size();
  const std::size_t every = std::max<std::size_t>(batches / 20, 1);
  if ((static_cast<std::size_t>(batch.queue) + 1) % every == 0) log_.line(batch_text(batch, batches));
}

void BatchLines::on_phase(const TttPhaseReport& phase) {
  log_.line(phase_text(phase));
}

void BatchLines::on_event(const TttEvent& event) {
  const auto own = tokens_.find(event.queue);
  if (event.kind == TttEventKind::book && progress_ && own != tokens_.end()) {
    if (event.queue != under_way_) {
      done_ += under_way_ < 0 ? 0 : tokens_.at(under_way_);
      under_way_ = event.queue;
      in_batch_ = 0;
    }
    // A document's last chunk may be shorter: never more than the batch has.
    const PlannedBatch& batch = plan_->queue[static_cast<std::size_t>(event.queue)];
    in_batch_ += static_cast<double>(static_cast<std::int64_t>(event.documents.size()) * batch.chunk_tokens);
    progress_->set(done_ + std::min(in_batch_, own->second));
  }
  if (event.kind != TttEventKind::collapse) return;
  log_.print(
      "warning: after batch {} test-time training scores more than {} bits per byte worse than the same windows "
      "without adaptation; more weight decay or a lower rate in [ttt.optimizer] keeps adapters "
      "from drifting{}",
      event.queue + 1, config_.collapse_margin,
      config_.on_collapse == OnCollapse::fallback ? "; the rest is scored without adapters" : "");
}

namespace {

// Leaves out what an earlier test-time training reported, except what this one continues.
const std::filesystem::path& prepared(const std::filesystem::path& path,
                                      const std::optional<TttStanding>& continued) {
  keep_json_lines(path, [&](const Json& event) {
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
                                            {"running_bpb", compared_.with.bpb()},
                                            {"without_bpb", compared_.without.bpb()},
                                            {"margin_bpb", config_.collapse_margin},
                                            {"fell_back", config_.on_collapse == OnCollapse::fallback}}));
  }
  if (next_) next_->on_event(event);
}

void TttMetrics::on_batch(const TttBatchReport& batch) {
  compared_ = batch.compared;
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

#include "framework/ttt/ttt_outputs.h"

#include <fmt/format.h>
#include <algorithm>
#include <fstream>
#include <set>

#include "framework/config/run_config.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/machine.h"
#include "framework/report/run_directory.h"
#include "framework/run/eval_json.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"

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

// "batch 3 of 20 (64 documents of up to 812 tokens): running val_bpb 1.0712, gain 0.0098, |A| 12.1
// drift 1.4, |B| 0.3".
std::string batch_text(const TttBatchReport& batch, std::size_t batches) {
  std::string text = fmt::format("batch {} of {} ({} documents of up to {} tokens): running {} {:.5f}",
                                 batch.queue + 1, batches, batch.documents, batch.longest_tokens,
                                 score_name(batch.running), score(batch.running));
  if (batch.compared.without.tokens > 0) text += fmt::format(", gain {:.5f}", gain(batch.compared));
  for (const AdapterNorm& norm : batch.adapters) {
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

}  // namespace

std::string TttChecks::text() const {
  if (mode == TttCheck::off) return "no chunk was checked (ttt.check = \"off\")";
  if (!repeats) return "no chunk was checked: the backend does not give the same bits twice";
  if (chunks == 0)
    return "no chunk was checked: none fits into 1 % of the cost; ttt.check = \"full\" checks all";
  return fmt::format(
      "{} of {} chunks were also scored with other tokens after {} cuts ({:.2f} % of the cost), and all scores "
      "before the cuts were the same to the bit",
      chunks, all_chunks, cuts, 100 * share);
}

void require_audit_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const std::string name = path.filename().string();
  const auto refuse_if = [&](bool refused, const char* why) {
    config_error_if(refused, "ttt.audit: '{}' cannot be the audit log: {}; choose another name.", name, why);
  };
  static constexpr auto letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  refuse_if(name.empty() || name.find_first_not_of(letters) != name.npos || name.starts_with('.') ||
                name.starts_with('-'),
            "a name is of letters, digits, _, - and ., and starts with none of the last two");
  for (const fs::path& file : RunFiles{path.parent_path()}.all())
    refuse_if(file.filename() == name, "a run's own file has that name");
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (status.type() == fs::file_type::not_found) return;
  refuse_if(failed || status.type() != fs::file_type::regular,
            "something that is not a regular file has that name");
  static constexpr std::string_view start_of_log = R"({"sequence":0,"event":)";
  std::ifstream file(path, std::ios::binary);
  std::string start(start_of_log.size(), '\0');
  file.read(start.data(), std::ssize(start));
  refuse_if(file.gcount() > 0 && start != start_of_log, "a file that is not an audit log has that name");
}

namespace {

Json result_json(const TttResult& result, const TttSection& section) {
  const TttReport& report = result.report;
  const TttChecks& checks = report.checks;
  const auto score_or_null = [](const std::optional<EvalResult>& score) {
    return score ? eval_json(*score) : Json();
  };
  Json transform;
  if (section.transform) {
    transform = {{"plugin", section.transform->plugin},
                 {"text_order", word_of(section.transform_order)},
                 {"contested", section.transform_order == TransformOrder::file},
                 {"without", report.untransformed}};
  }
  Json json = {{"weights", result.weights},
               {"weights_sha256", result.weights_sha256},
               {"with_ttt", eval_json(result.with)},
               {"without_ttt", score_or_null(result.without)},
               {"compared", report.compared},
               {"evaluation", score_or_null(result.evaluation)},
               {"transform", transform},
               {"device", result.device},
               {"instructions", instruction_set()},
               {"setup_seconds", result.setup_seconds},
               {"peak_device_memory_bytes", result.peak_device_memory_bytes},
               {"documents", report.documents},
               {"lanes", report.lanes},
               {"ranks", report.ranks},
               {"collapsed_at_batch", report.collapsed_at < 0 ? Json() : Json(report.collapsed_at)},
               {"fell_back", report.fell_back},
               {"causality_check",
                {{"check", word_of(checks.mode)},
                 {"chunks", checks.chunks},
                 {"chunks_of", checks.all_chunks},
                 {"cuts", checks.cuts},
                 {"share_of_cost", checks.share},
                 {"text", checks.text()}}}};
  if (!result.made.empty()) json["made_on_device"] = result.made;
  json["data"] = to_json(result.with.data);
  json["length_bins"] = report.bins;
  json["phases"] = report.phases;
  json["batches"] = report.batches;
  return json;
}

}  // namespace

// What an interrupted run wrote before it was saved comes first. After that comes a line of a batch that was not done then,
// and then what has to be told again: also what several lanes decided where they met.
TttOutputs::TttOutputs(const Files& files, const TttConfig& config, const TttStanding* continued)
    : files_(files), config_(config) {
  if (files.audit.empty()) return;
  if (continued) {
    const std::set<std::int64_t> done(continued->done.begin(), continued->done.end());
    bool stays = true;
    keep_json_lines(files.audit, [&](const Json& line) {
      stays = stays && done.contains(line.value("queue", std::int64_t{-1}));
      sequence_ += stays ? 1 : 0;
      return stays;
    });
  }
  audit_.emplace(files.audit, continued ? JsonLinesWriter::Start::append : JsonLinesWriter::Start::anew);
}

void TttOutputs::begin(const TttScorer& run, std::size_t done) {
  plan_ = &run.documents();
  // The batches have lines of their own, and the causality probes come first.
  ProgressPhase phase{.what = "test-time training", .unit = "tokens"};
  phase.plain_lines = false;
  phase.ticks = true;
  for (std::size_t i = 0; i < run.own_batches().size(); ++i) {
    for (const int number : plan_->batch(run.own_batches()[i]).documents) {
      phase.total += static_cast<double>(plan_->targets(number));
      if (i < done) phase.done += static_cast<double>(plan_->targets(number));
    }
  }
  progress_.emplace(files_.log, phase);
}

void TttOutputs::on_event(const TttEvent& event) {
  if (audit_) {
    Json line = {{"sequence", sequence_++}, {"event", word_of(event.kind)}, {"queue", event.queue}};
    if (event.batch >= 0) line["batch"] = event.batch;
    if (event.chunk >= 0) line["chunk"] = event.chunk;
    if (!event.documents.empty()) line["documents"] = event.documents;
    if (!event.chosen.empty()) line["chosen"] = Json::parse(event.chosen);
    audit_->write(line.dump());
  }
  if (event.kind == TttEventKind::book && progress_ && event.adapters) {
    for (const int number : event.documents)
      progress_->advance(
          static_cast<double>(plan_->range(plan_->batch(event.queue), number, event.chunk).count()));
  }
  if (!files_.log) return;
  if (event.phase) files_.log->line(phase_text(*event.phase));
  if (event.kind != TttEventKind::collapse) return;
  files_.log->print(
      "warning: after batch {} test-time training scores more than {} bits per byte worse than the same windows "
      "without adaptation; more weight decay or a lower rate in [ttt.optimizer] keeps adapters "
      "from drifting{}",
      event.queue + 1, config_.collapse_margin,
      config_.on_collapse == OnCollapse::fallback ? "; the rest is scored without adapters" : "");
}

// A line for people after every twentieth part of the batches.
void TttOutputs::on_batch(const TttBatchReport& batch) {
  if (!files_.log || !plan_) return;
  const std::size_t batches = plan_->queue.size();
  if ((batch.queue + 1) % static_cast<std::int64_t>(std::max<std::size_t>(batches / 20, 1)) == 0)
    files_.log->line(batch_text(batch, batches));
}

void TttOutputs::finish(const TttResult& result, const TttSection& section) {
  log_result(result, section);
  if (files_.directory.empty()) return;
  write_file_atomically(RunFiles{files_.directory}.ttt_result(), result_json(result, section).dump(1) + "\n");
}

void TttOutputs::log_result(const TttResult& result, const TttSection& section) {
  RunLog& log = *files_.log;
  const auto& [with, without] = result.report.compared;
  log.print("causality: {}", result.report.checks.text());
  if (result.evaluation) {
    log.result(fmt::format("evaluation:                 {}", score_text(*result.evaluation)));
    log.result(fmt::format("windows without adaptation: {}", score_text(*result.without)));
  }
  if (result.report.untransformed.tokens > 0) {
    log.result(fmt::format("  of it without '{}':      {}", section.transform->plugin,
                           score_text(eval_result(result.report.untransformed, 0))));
  }
  log.result(
      fmt::format("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds));
  if (!result.without) return;
  std::string text =
      fmt::format("gain:                       {} {:.5f}", score_name(with), gain(result.report.compared));
  if (with.tokens < result.report.sums.tokens)
    text += fmt::format(" (in a sample of {} tokens, with {:.5f})", with.tokens, score(with));
  log.result(text);
}

}  // namespace mulligan

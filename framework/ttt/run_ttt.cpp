#include "framework/ttt/run_ttt.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/train/run_ledger.h"
#include "framework/train/run_plugins.h"
#include "framework/ttt/audit_log.h"
#include "framework/ttt/plain_scorer.h"
#include "framework/ttt/scored_validation.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_metrics.h"
#include "framework/ttt/ttt_model.h"
#include "framework/ttt/ttt_plugins.h"
#include "framework/ttt/ttt_run.h"
#include "framework/ttt/ttt_text.h"

namespace mulligan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

EvalResult eval_result(const ScoreSums& sums, double seconds) {
  return {sums.loss_nats, sums.tokens, sums.bytes, sums.mean_loss_nats(), sums.bpb(), seconds, {}};
}

LedgerEntry ledger_entry(const TttResult& result, bool quantised) {
  LedgerEntry entry;
  entry.stage = LedgerStage::ttt;
  entry.seconds = {{"ttt_setup", result.setup_seconds},
                   {"ttt_plain", result.without.seconds},
                   {"ttt", result.with.seconds}};
  if (quantised) entry.bytes.emplace_back("artifact_scored", std::filesystem::file_size(result.weights));
  if (quantised) entry.scores.emplace_back("after quantisation", result.without);
  entry.scores.emplace_back(quantised ? "after test-time training" : "test-time training, not quantised",
                            result.with);
  return entry;
}

// Lines for people while the run goes on: some twenty batches, every phase, the collapse.
class BatchLines : public TttListener {
 public:
  BatchLines(RunLog& log, const TttConfig& config) : log_(log), config_(config) {}
  void set_batches(std::size_t batches) { batches_ = batches; }
  void on_batch(const TttBatchReport& batch) override {
    const std::size_t every = std::max<std::size_t>(batches_ / 20, 1);
    const std::string text = batch_text(batch, batches_);
    if ((static_cast<std::size_t>(batch.queue) + 1) % every == 0) {
      log_.line(text);
    } else {
      log_.show_live(text);
    }
  }
  void on_phase(const TttPhaseReport& phase) override { log_.line(phase_text(phase)); }
  void on_event(const TttEvent& event) override {
    if (event.kind != TttEvent::Kind::collapse) return;
    log_.print(
        "warning: after batch {} test-time training scores more than {} bits per byte worse than the plain "
        "model on the same "
        "documents; more weight decay or a lower rate in [ttt.optimizer] keeps adapters from drifting{}",
        event.queue + 1, config_.collapse_margin,
        config_.on_collapse == OnCollapse::fallback ? "; the rest is scored without adapters" : "");
  }

 private:
  RunLog& log_;
  const TttConfig& config_;
  std::size_t batches_ = 0;
};

void require_whole_set(const RunConfig& config) {
  if (config.ledger.rules != LedgerRules::strict || config.ttt->config.document_fraction == 1.0) return;
  throw config_error(
      "ttt.document_fraction = {} leaves documents out, and under ledger.rules = \"strict\" a result is of "
      "the whole "
      "set; set it to 1.",
      config.ttt->config.document_fraction);
}

}  // namespace

TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options) {
  if (!loaded.config.ttt) {
    throw config_error("{}: there is no [ttt] section, which says how test-time training is done; add one.",
                       loaded.file);
  }
  const auto setup_start = Clock::now();
  require_whole_set(loaded.config);
  const std::string audit_name = loaded.config.ttt->config.audit;
  std::optional<DirectoryLock> lock;
  if (!options.directory.empty()) lock.emplace(options.directory, "ttt");
  if (!audit_name.empty()) require_audit_file(options.directory / audit_name);
  resolve_run_plugins(loaded, host, PluginUse::adapt);
  const RunConfig& config = loaded.config;
  RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing can be scored.",
                       backend.plugin().description());
  }
  const TttPlugins rule(loaded, host, plugins);
  RunLog log(options, {});

  const ValidationSet validation = scored_validation(config);
  const std::span<const std::uint16_t> tokens = validation.tokens;
  if (!validation.note.empty()) log.line(validation.note);
  for (const std::string& note : require_data_of(origin, validation.data, config.data)) log.line(note);
  require_equal_bytes(validation, config.ttt->config);
  log.print("test-time training on {} tokens with '{}' on {}", tokens.size() - 1, origin.name,
            backend.info().description);

  TttModel weights(backend, config);
  load(weights.store(), weights.layouts());
  const BaseModel& model = weights.base();
  refresh_copies(model);

  TttResult result;
  result.weights = origin.name;
  double plain_seconds = 0;
  const std::vector<float> reference =
      PlainScorer(model, config, validation.bos_id).losses(tokens, plain_seconds);

  const PhiloxDraws draws(static_cast<std::uint64_t>(config.run.seed));
  const TttSetup setup = rule.setup(config, draws);
  const TttData data{tokens, validation.bos_id, validation.byte_table ? &*validation.byte_table : nullptr,
                     reference};
  BatchLines progress(log, config.ttt->config);
  TttListener* listener = &progress;
  std::optional<TttMetrics> metrics;
  if (!options.directory.empty()) {
    std::filesystem::create_directories(options.directory);
    listener = &metrics.emplace(options.directory / "metrics.jsonl", config.ttt->config, listener);
  }
  std::optional<AuditLog> audit;
  if (!config.ttt->config.audit.empty())
    listener = &audit.emplace(options.directory / config.ttt->config.audit, listener);
  TttRun run(model, setup, data, listener);
  progress.set_batches(run.plan().queue.size());
  result.setup_seconds = seconds_since(setup_start) - plain_seconds;

  const auto start = Clock::now();
  try {
    result.report = run.run();
  } catch (const VoidRun& reason) {
    // No score, and none of an earlier run that could be taken for this one's.
    if (!options.directory.empty())
      write_file_atomically(RunFiles{options.directory}.ttt_result(), void_ttt_json(reason.what()));
    throw;
  }
  result.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
  result.with = eval_result(result.report.sums, seconds_since(start));
  result.without = eval_result(result.report.reference, plain_seconds);
  result.with.data = result.without.data = validation.data;
  log.line(bins_text(result.report));
  const TttChecks& checks = result.report.checks;
  log.print("causality: {} scores of {} turns were the same to the bit with other tokens behind them (seed {})",
            checks.scores, checks.turns, checks.seed);
  log.result(fmt::format("without test-time training: {}", score_text(result.without)));
  log.result(fmt::format("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds));
  if (metrics) {
    metrics->finish(result);
    write_file_atomically(RunFiles{options.directory}.ttt_result(), ttt_json(result));
  }
  if (options.on_result) options.on_result(result);
  const RunLedger ledger =
      close_entry(ledger_entry(result, options.quantised), options.directory, config.ledger, log);
  log.result("\n" + ledger_table(config.ledger, ledger));
  return result;
}

}  // namespace mulligan

#include "framework/ttt/run_ttt.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/train/parameter_plan.h"
#include "framework/train/run_ledger.h"
#include "framework/train/run_plugins.h"
#include "framework/ttt/audit_log.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_metrics.h"
#include "framework/ttt/ttt_run.h"
#include "framework/ttt/ttt_text.h"

namespace mulligan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The plugins of [ttt]; their kernels are made known to the run's backend.
struct TttPlugins {
  TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run)
      : adapters(host.load(PluginKind::ttt, section(loaded).adapters.plugin, section(loaded).adapters.path),
                 loaded.plugin("ttt.adapters")),
        optimizer(host.load(PluginKind::optimizer, section(loaded).optimizer.plugin,
                            section(loaded).optimizer.path),
                  loaded.plugin("ttt.optimizer")) {
    if (const auto& table = section(loaded).base) {
      base.emplace(host.load(PluginKind::ttt, table->plugin, table->path), loaded.plugin("ttt.base"));
      if (base->has_base_update()) base_optimizer = make_sgd(loaded, host, base->base_update().momentum);
    }
    std::vector<const Plugin*> known = {&run.loss->plugin()};
    for (const auto& other : run.optimizers) known.push_back(&other->plugin());
    const auto add = [&](const Plugin& plugin) {
      if (std::ranges::find(known, &plugin) != known.end()) return;
      run.backend->add_kernels(plugin);
      known.push_back(&plugin);
    };
    add(adapters.plugin());
    add(optimizer.plugin());
    if (base_optimizer) add(base_optimizer->plugin());
  }

  TttPlugin adapters;
  Optimizer optimizer;
  std::optional<TttPlugin> base;
  std::unique_ptr<Optimizer> base_optimizer;

 private:
  static const TttSection& section(const LoadedConfig& loaded) { return *loaded.config.ttt; }

  // The optimiser of the base model's passes is always sgd, without weight decay.
  static std::unique_ptr<Optimizer> make_sgd(const LoadedConfig& loaded, PluginHost& host, double momentum) {
    const PluginHandle plugin = host.load(PluginKind::optimizer, "sgd");
    PluginTable table = read_plugin_table(nullptr, "ttt.base", loaded.file, "sgd");
    Origin origin;
    origin.kind = Origin::Kind::derived;
    table.keys.put("momentum", ConfigNode::make_leaf(ConfigValue(momentum), origin));
    const auto keys = plugin->keys();
    const auto rows = key_specs(plugin->name(), keys.data(), static_cast<std::uint32_t>(keys.size()));
    return std::make_unique<Optimizer>(plugin, resolve_plugin_keys(table, plugin->name(), rows));
  }
};

// Losses of every target by stream position, from rows of the evaluation's length.
std::vector<float> plain_losses(const BaseModel& model, const RunConfig& config,
                                std::span<const std::uint16_t> tokens, int bos_id, double& seconds) {
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.drop_remainder = false;
  options.compute = model.compute;
  options.looping = model.looping;
  options.bos_id = bos_id;
  Evaluator evaluator(model.store, model.config, model.layouts, options);
  SharedArena arena(model.store.backend());
  arena.bind({&evaluator.program()}, model.store);
  std::vector<float> losses(tokens.size());
  const auto start = Clock::now();
  evaluator.score(tokens, nullptr, 1, 0, [&](const EvalSpan& span, std::span<const float> row) {
    std::ranges::copy(row, losses.begin() + span.start + 1);
  });
  seconds = seconds_since(start);
  return losses;
}

// Bytes of the scored targets by the second route: decoding them.
std::uint64_t decoded_bytes(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                            const DocumentPlan& plan, bool all) {
  if (all)
    return count_bytes_by_decoding(tokenizer,
                                   tokens.subspan(static_cast<std::size_t>(plan.documents[0].start)));
  std::uint64_t bytes = 0;
  for (const PlannedBatch& batch : plan.queue) {
    for (const int number : batch.batch.documents) {
      const Document& document = plan.document(number);
      bytes += count_bytes_by_decoding(tokenizer, tokens.subspan(static_cast<std::size_t>(document.start),
                                                                 static_cast<std::size_t>(document.length)));
    }
  }
  return bytes;
}

EvalResult eval_result(const ScoreSums& sums, double seconds) {
  return {sums.loss_nats, sums.tokens, sums.bytes, sums.mean_loss_nats(), sums.bpb(), seconds};
}

// The validation tokens; whole rows of them where the configuration leaves the remainder unscored.
ValidationSet scored_validation(const RunConfig& config) {
  ValidationSet validation = load_validation(config.data, config.model.vocabulary);
  if (config.eval.drop_remainder) {
    validation.tokens.resize(static_cast<std::size_t>(
        whole_rows_length(static_cast<std::int64_t>(validation.tokens.size()), config.eval.sequence_length)));
  }
  if (validation.tokens.empty()) {
    throw data_error("the validation shards '{}' hold less than one row of eval.sequence_length = {} tokens.",
                     config.data.validation, config.eval.sequence_length);
  }
  return validation;
}

LedgerEntry ledger_entry(const TttResult& result, bool quantised) {
  LedgerEntry entry;
  entry.stage = LedgerStage::ttt;
  entry.seconds = {{"ttt_setup", result.setup_seconds},
                   {"ttt_plain", result.without.seconds},
                   {"ttt", result.with.seconds}};
  if (quantised) entry.scores.emplace_back("after quantisation", result.without);
  entry.scores.emplace_back(quantised ? "after test-time training" : "test-time training, not quantised",
                            result.with);
  return entry;
}

// Lines for people while the run goes on: some twenty batches, every phase, the collapse.
class Progress : public TttListener {
 public:
  Progress(RunLog& log, const TttConfig& config) : log_(log), config_(config) {}
  void set_batches(std::size_t batches) { batches_ = batches; }
  void on_batch(const TttBatchReport& batch) override {
    const std::size_t every = std::max<std::size_t>(batches_ / 20, 1);
    const std::string text = batch_text(batch, batches_);
    if ((static_cast<std::size_t>(batch.queue) + 1) % every == 0) {
      log_.line(text);
    } else {
      log_.progress(text);
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

}  // namespace

TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const std::string& origin, const WeightLoader& load,
                  const TttOptions& options) {
  if (!loaded.config.ttt) {
    throw config_error("{}: there is no [ttt] section, which says how test-time training is done; add one.",
                       loaded.file);
  }
  const auto setup_start = Clock::now();
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  const TttSection& section = *config.ttt;
  RunPlugins plugins = make_run_plugins(loaded, host);
  Backend& backend = *plugins.backend;
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing can be scored.",
                       backend.plugin().description());
  }
  const TttPlugins rule(loaded, host, plugins);
  RunLog log(options.console, {});

  const ValidationSet validation = scored_validation(config);
  const std::span<const std::uint16_t> tokens = validation.tokens;
  log.print("test-time training on {} tokens with '{}' on {}", tokens.size() - 1, origin,
            backend.info().description);

  const DType compute = to_dtype(config.train.compute_dtype);
  const std::vector<ParameterLayout> layouts = parameter_layouts(config.model, compute);
  TensorStore store(backend);
  for (const ParameterLayout& layout : layouts) store.create(master_name(layout.spec.name), layout.spec.type);
  load(store, layouts);
  const BaseModel model{store, config.model, layouts, compute, config.model.loop.extra_passes > 0};
  refresh_copies(model);

  TttResult result;
  result.weights = origin;
  double plain_seconds = 0;
  const std::vector<float> reference = plain_losses(model, config, tokens, validation.bos_id, plain_seconds);

  const PhiloxDraws draws(static_cast<std::uint64_t>(config.run.seed));
  const TttSetup setup{section.config,
                       rule.adapters,
                       rule.optimizer,
                       section.lr,
                       rule.base ? &*rule.base : nullptr,
                       rule.base_optimizer.get(),
                       config.eval.sequence_length,
                       draws};
  const TttData data{tokens, validation.bos_id, validation.byte_table ? &*validation.byte_table : nullptr,
                     reference};
  Progress progress(log, section.config);
  TttListener* listener = &progress;
  std::optional<TttMetrics> metrics;
  if (!options.directory.empty()) {
    std::filesystem::create_directories(options.directory);
    listener = &metrics.emplace(options.directory / "metrics.jsonl", section.config, listener);
  }
  std::optional<AuditLog> audit;
  if (!section.config.audit.empty())
    listener = &audit.emplace(options.directory / section.config.audit, listener);
  TttRun run(model, setup, data, listener);
  progress.set_batches(run.plan().queue.size());
  result.setup_seconds = seconds_since(setup_start) - plain_seconds;

  const auto start = Clock::now();
  result.report = run.run();
  result.with = eval_result(result.report.sums, seconds_since(start));
  result.without = eval_result(result.report.reference, plain_seconds);
  if (validation.tokenizer) {
    const std::uint64_t decoded =
        decoded_bytes(*validation.tokenizer, tokens, run.plan(), section.config.document_fraction == 1.0);
    if (decoded != result.with.bytes) {
      throw data_error(
          "the byte table counts {} bytes in the {} scored validation tokens, decoding them gives {}, so no "
          "bits per byte can "
          "be told; use a tokenizer whose pieces hold the space mark at their start only.",
          result.with.bytes, result.with.tokens, decoded);
    }
  }
  log.line(bins_text(result.report));
  log.print("without test-time training: {}", score_text(result.without));
  log.print("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds);
  if (metrics) {
    metrics->finish(result);
    write_file_atomically(RunFiles{options.directory}.ttt_result(), ttt_json(result));
  }
  const RunLedger ledger =
      close_entry(ledger_entry(result, options.quantised), options.directory, config.ledger, log);
  log.line("\n" + ledger_table(config.ledger, ledger));
  return result;
}

}  // namespace mulligan

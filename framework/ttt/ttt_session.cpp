#include "framework/ttt/ttt_session.h"

#include <cmath>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/plan_cache_counts.h"
#include "framework/run/replaced_run.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_state.h"
#include "framework/run/strict_rules.h"
#include "framework/ttt/plain_scorer.h"
#include "framework/ttt/score_book.h"
#include "framework/ttt/scoring_input.h"
#include "framework/ttt/ttt_outputs.h"
#include "framework/ttt/ttt_plugins.h"
#include "framework/ttt/ttt_report.h"
#include "framework/ttt/ttt_saver.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

EvalResult eval_result(const ScoreSums& sums, double seconds) {
  return {sums.loss_nats, sums.tokens, sums.bytes, sums.mean_loss_nats(), sums.bpb(), seconds, {}};
}

LedgerEntry ledger_entry(const TttResult& result, bool quantised) {
  LedgerEntry entry;
  entry.stage = LedgerStage::ttt;
  entry.seconds.emplace_back("ttt_setup", result.setup_seconds);
  if (result.evaluation) entry.seconds.emplace_back("ttt_plain", result.evaluation->seconds);
  entry.seconds.emplace_back("ttt", result.with.seconds);
  if (quantised) entry.bytes.emplace_back("artifact_scored", std::filesystem::file_size(result.weights));
  if (quantised && result.evaluation) entry.scores.emplace_back("after quantisation", *result.evaluation);
  if (result.without) entry.scores.emplace_back("windows without adaptation", *result.without);
  entry.scores.emplace_back(quantised ? "after test-time training" : "test-time training, not quantised",
                            result.with);
  return entry;
}

// Scores without test-time training what no earlier attempt has scored; of several ranks each has a share.
void score_reference(PlainScorer& scorer, std::span<const std::uint16_t> tokens, TttSaver& saver, RunLog& log,
                     RunRanks& ranks) {
  TttProgress& done = saver.progress();
  if (done.reference_done) return;
  done.reference.resize(tokens.size());
  const auto total = static_cast<double>(tokens.size() - 1);
  Progress progress(&log, {.what = "scoring without adapters", .unit = "tokens", .total = total});
  try {
    scorer.score(
        tokens, done.reference, done.reference_row,
        [&](const EvalPosition& position, std::size_t rows) {
          done.reference_row = position.row;
          done.reference_done = position.row == rows;
          progress.set(total * static_cast<double>(position.row) / static_cast<double>(rows));
          ranks.note_step();
          ranks.require_running();
          saver.passed();
        },
        ranks.group().world_size(), ranks.group().rank());
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted) saver.passed();  // saves, and says where
    throw;
  }
}

std::string ranks_text(int world_size) {
  return world_size == 1 ? "one rank" : fmt::format("{} ranks", world_size);
}

// What the parts of a run share.
struct Attempt {
  LoadedConfig& loaded;
  PluginHost& host;
  const WeightOrigin& origin;
  const WeightLoader& load;
  const TttOptions& options;
  RunRanks& ranks;
  const fs::path& directory;
  std::int64_t lanes;
  Ledger& clock;
  TttSaver& saver;
  const ValidationSet& validation;
};

// The scores without test-time training, where a collapse is watched for; several ranks exchange their shares.
void score_without(const Attempt& attempt, const BaseModel& model, Backend& backend, LossExchange* losses,
                   RunLog& log) {
  const RunConfig& config = attempt.loaded.config;
  if (config.ttt->config.on_collapse == OnCollapse::off) return;
  PlainScorer scorer(model, config, attempt.validation.bos_id);
  attempt.clock.enter("ttt_plain");
  score_reference(scorer, attempt.validation.tokens, attempt.saver, log, attempt.ranks);
  backend.synchronize();  // the clock ends when the device has
  if (losses) losses->merge(attempt.saver.progress().reference);
  attempt.clock.enter("ttt_setup");
}

// The same windows without adaptation, unless an earlier attempt has scored them.
void score_windows_without(const Attempt& attempt, TttScorer& scorer, Backend& backend) {
  if (attempt.loaded.config.ttt->config.on_collapse == OnCollapse::off) return;
  std::vector<float>& windows = attempt.saver.progress().windows;
  if (windows.empty()) {
    attempt.clock.enter("ttt_plain");
    windows = scorer.score_without();
    backend.synchronize();
    attempt.clock.enter("ttt_setup");
    attempt.saver.passed();
  }
  scorer.compare_with(windows);
}

// What is scored, on what, and that it may be.
void introduce(const Attempt& attempt, const Backend& backend, RunLog& log) {
  const RunConfig& config = attempt.loaded.config;
  const ValidationSet& validation = attempt.validation;
  attempt.ranks.require_same_data(validation.data);
  if (!validation.note.empty()) log.line(validation.note);
  if (!validation.byte_note.empty()) log.line(validation.byte_note);
  for (const std::string& note : require_data_of(attempt.origin, validation.data, config.data))
    log.line(note);
  require_equal_bytes(validation, config.ttt->config);
  log.print("test-time training on {} tokens with '{}' on {}", validation.tokens.size() - 1,
            attempt.origin.name, backend.info().description);
}

// A result that says what is scored and by which score transform.
TttResult begin_result(const Attempt& attempt, RunLog& log) {
  const TttSection& ttt = *attempt.loaded.config.ttt;
  TttResult result;
  result.weights = attempt.origin.name;
  result.weights_sha256 = attempt.origin.sha256;
  if (!ttt.transform) return result;
  result.transform = ttt.transform->plugin;
  result.transform_order = transform_order_word(ttt.transform_order);
  result.contested = ttt.transform_order == TransformOrder::file;
  if (result.contested) {
    log.print(
        "warning: ttt.transform.text_order = \"file\" is the published record's way and contested: "
        "proposals know documents that are scored later; \"queue\" and \"document\" do not");
  }
  return result;
}

// How several ranks exchange their losses; of a single one: nothing.
struct Exchange {
  std::unique_ptr<Communicator> communicator;
  std::optional<LossExchange> losses;
};

// A single rank keeps its state from here on, several check that they score the same and connect.
Exchange open_state(const Attempt& attempt, Backend& backend, LoadedModel& weights) {
  const std::span<const std::uint16_t> tokens = attempt.validation.tokens;
  RunRanks& ranks = attempt.ranks;
  Exchange exchange;
  if (ranks.alone() && attempt.directory.empty()) return exchange;
  const ScoreIdentity identity = score_identity(attempt.loaded, ScoreCommand::ttt, attempt.host,
                                                weights.store(), weights.layouts(), tokens);
  if (ranks.alone()) {
    attempt.saver.open({attempt.directory / "ttt.state", identity, attempt.loaded.config.eval.save_seconds,
                        attempt.options.resume});
    return exchange;
  }
  ranks.require_same(identity);
  exchange.communicator = ranks.communicator(attempt.loaded, attempt.host, backend);
  exchange.losses.emplace(weights.store(), *exchange.communicator, static_cast<std::int64_t>(tokens.size()));
  return exchange;
}

// Who listens to a run: the terminal, metrics.jsonl and the audit log, as far as there are any.
struct Listeners {
  Listeners(const Attempt& attempt, RunLog& log, const std::optional<TttStanding>& standing,
            const std::vector<std::int64_t>& done)
      : lines(log, attempt.loaded.config.ttt->config) {
    const TttConfig& config = attempt.loaded.config.ttt->config;
    if (!attempt.directory.empty()) {
      fs::create_directories(attempt.directory);
      all = &metrics.emplace(attempt.directory / "metrics.jsonl", config, all, standing);
    }
    if (!config.audit.empty() && attempt.ranks.first())
      all = &audit.emplace(attempt.directory / config.audit, all, done);
  }

  BatchLines lines;
  std::optional<TttMetrics> metrics;
  std::optional<AuditLog> audit;
  TttListener* all = &lines;
};

// Plans the scoring; `planned` gets it, for it cannot be moved.
void plan_scorer(const Attempt& attempt, const BaseModel& model, const TttSetup& setup, const TttData& data,
                 TttListener* listener, RunLog& log, std::optional<TttScorer>& planned) {
  try {
    Progress planning(&log, ProgressPhase{.what = "planning test-time training", .ticks = true});
    planned.emplace(model, setup, data, listener);
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted) attempt.saver.interrupted();
    throw;
  }
  planned->at_boundaries([&] { attempt.saver.between_batches(*planned); },
                         [&] {
                           attempt.ranks.note_step();
                           attempt.ranks.require_running();
                           attempt.saver.between_chunks();
                         });
}

// Scores the documents. An invalid run leaves no score, none of an earlier run that could be taken for its own,
// and no state that could be continued.
TttReport score_documents(const Attempt& attempt, TttScorer& scorer,
                          const std::optional<TttStanding>& standing, Backend& backend,
                          PlanCacheCounts& made) {
  backend.synchronize();
  made.clock_starts();
  attempt.clock.enter("ttt");
  try {
    TttReport report = scorer.run(standing ? &*standing : nullptr);
    backend.synchronize();  // the clock ends when the device has
    made.clock_stops();
    return report;
  } catch (const InvalidRun& reason) {
    attempt.saver.finish();
    if (!attempt.directory.empty())
      write_file_atomically(RunFiles{attempt.directory}.ttt_result(), invalid_ttt_json(reason.what()));
    throw;
  }
}

// Totals and times of the scores that `result` has the report of.
void fill_totals(const Attempt& attempt, const TttScorer& scorer, const Backend& backend, TttResult& result) {
  TttSaver& saver = attempt.saver;
  result.device = backend.info().description;
  result.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
  result.setup_seconds = saver.seconds("ttt_setup");
  result.with = eval_result(result.report.sums, saver.seconds("ttt"));
  result.with.data = attempt.validation.data;
  const TttConfig& config = attempt.loaded.config.ttt->config;
  add_byte_rules(attempt.validation, config, result.with);
  if (result.report.compared.without.tokens == 0) return;
  ScoreSums evaluated;
  for (const PlannedBatch& batch : scorer.documents().queue) {
    for (const int number : batch.batch.documents) {
      const std::int64_t first = scorer.documents().document(number).start + 1;
      evaluated += scorer.book().range_of(saver.progress().reference, first,
                                          first + scorer.documents().targets(number));
    }
  }
  const double seconds = saver.seconds("ttt_plain");
  result.evaluation = eval_result(evaluated, seconds);
  result.without = eval_result(result.report.compared.without, seconds);
  for (auto* score : {&result.evaluation, &result.without}) (*score)->data = attempt.validation.data;
  add_byte_rules(attempt.validation, config, *result.evaluation);
  if (result.without->tokens == result.with.tokens)
    add_byte_rules(attempt.validation, config, *result.without);
}

void log_result(const TttResult& result, RunLog& log) {
  log.line(bins_text(result.report));
  log.print("causality: {}", result.report.checks.text());
  if (result.evaluation) {
    log.result(fmt::format("evaluation:                 {}", score_text(*result.evaluation)));
    log.result(fmt::format("windows without adaptation: {}", score_text(*result.without)));
  }
  if (result.report.untransformed.tokens > 0) {
    log.result(fmt::format("  of it without '{}':      {}", result.transform,
                           score_text(eval_result(result.report.untransformed, 0))));
  }
  log.result(
      fmt::format("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds));
  if (result.without) log.result(gain_text(result.report));
}

TttResult score(const Attempt& attempt) {
  LoadedConfig& loaded = attempt.loaded;
  PluginHost& host = attempt.host;
  RunRanks& ranks = attempt.ranks;
  TttSaver& saver = attempt.saver;
  resolve_run_plugins(loaded, host, PluginUse::adapt);
  ranks.require_same_run(loaded, host);
  const RunConfig& config = loaded.config;
  RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing can be scored.",
                       backend.plugin().description());
  }
  const TttPlugins rule(loaded, host, plugins);
  RunLog log(attempt.options, {});
  introduce(attempt, backend, log);

  LoadedModel weights(backend, config, base_masters(*config.ttt));
  weights.load(attempt.load);
  const BaseModel model = base_model(weights, config);
  TttResult result = begin_result(attempt, log);
  Exchange exchange = open_state(attempt, backend, weights);
  LossExchange* losses = exchange.losses ? &*exchange.losses : nullptr;
  score_without(attempt, model, backend, losses, log);
  // Its tensors are uploaded once; the copy here goes with the end of the set-up.
  const std::optional<TttStanding> standing = std::move(saver.progress().standing);
  saver.progress().standing.reset();
  const std::vector<std::int64_t> done = standing ? standing->done : std::vector<std::int64_t>();
  if (standing) log.print("continues after {} batches", done.size());

  const PhiloxDraws draws(static_cast<std::uint64_t>(config.run.seed));
  TttSetup setup = rule.setup(config, draws);
  setup.lanes = attempt.lanes;
  setup.communicator = exchange.communicator.get();
  setup.losses = losses;
  const TttData data{attempt.validation.tokens, attempt.validation.bos_id, attempt.validation.counter(), {}};
  Listeners listeners(attempt, log, standing, done);
  std::optional<TttScorer> scorer;
  plan_scorer(attempt, model, setup, data, listeners.all, log, scorer);
  if (attempt.lanes > 1)
    log.print("{} lanes of batches on {}", attempt.lanes, ranks_text(ranks.group().world_size()));
  score_windows_without(attempt, *scorer, backend);
  listeners.lines.begin(*scorer, done.size());
  PlanCacheCounts made([&] { return std::vector<const Backend*>{&backend}; });
  result.report = score_documents(attempt, *scorer, standing, backend, made);
  listeners.lines.end();
  result.made = made.counts(ranks.group());
  if (ranks.first()) {
    fill_totals(attempt, *scorer, backend, result);
    log_result(result, log);
  }
  if (!ranks.first()) return result;
  if (listeners.metrics) {
    listeners.metrics->finish(result);
    write_file_atomically(RunFiles{attempt.directory}.ttt_result(), ttt_json(result));
  }
  saver.finish();
  const RunLedger ledger =
      close_entry(ledger_entry(result, attempt.options.quantised), attempt.directory, config.ledger, log);
  log.result("\n" + ledger_table(config.ledger, ledger));
  return result;
}

}  // namespace

TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options) {
  RunRanks alone;
  return run_ttt(loaded, host, origin, load, options, alone);
}

TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options, RunRanks& ranks) {
  if (!loaded.config.ttt) {
    throw config_error("{}: there is no [ttt] section, which says how test-time training is done; add one.",
                       loaded.file);
  }
  if (!ranks.alone() && options.resume) {
    throw config_error("test-time training by several ranks keeps no state; leave out --resume.");
  }
  const std::int64_t lanes = lanes_for(loaded, ranks.group().world_size());
  const fs::path directory = ranks.first() ? options.directory : fs::path();
  Ledger clock;
  clock.enter("ttt_setup");
  TttSaver saver(clock);
  require_scorable(loaded);
  const std::string audit_name = loaded.config.ttt->config.audit;
  std::optional<DirectoryLock> lock;
  if (!directory.empty()) {
    lock.emplace(directory, "ttt");
    remove_temporary_leftovers(directory);
  }
  if (!audit_name.empty() && ranks.first()) require_audit_file(directory / audit_name);
  const ValidationSet validation = scored_validation(loaded.config);
  require_strict_validation(loaded.config, validation);
  const Attempt attempt{loaded,    host,  origin, load,  options,   ranks,
                        directory, lanes, clock,  saver, validation};
  TttResult result = score(attempt);
  if (options.on_result && ranks.first()) options.on_result(result);
  return result;
}

}  // namespace mulligan

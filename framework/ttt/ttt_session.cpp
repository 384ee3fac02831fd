#include "framework/ttt/ttt_session.h"

#include <cmath>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/made_on_device.h"
#include "framework/run/process_check.h"
#include "framework/run/replaced_run.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_state.h"
#include "framework/run/strict_rules.h"
#include "framework/ttt/score_book.h"
#include "framework/ttt/scoring_input.h"
#include "framework/ttt/ttt_outputs.h"
#include "framework/ttt/ttt_plugins.h"
#include "framework/ttt/ttt_report.h"
#include "framework/ttt/ttt_saver.h"
#include "framework/ttt/ttt_scorer.h"
#include "framework/ttt/window_program.h"

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
  if (result.without) entry.seconds.emplace_back("ttt_plain", result.without->seconds);
  entry.seconds.emplace_back("ttt", result.with.seconds);
  if (quantised) entry.bytes.emplace_back("artifact_scored", std::filesystem::file_size(result.weights));
  if (quantised && result.without) entry.scores.emplace_back("after quantisation", *result.without);
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

// What the parts of a run share that begins outside of the thread for foreign code.
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
  BlindChecker* blind;
  Confinement confinement;
};

void log_checks(RunLog& log, const TttChecks& checks) {
  const char* who = checks.own_process ? "by a process that never had them" : "in this process";
  if (checks.full) {
    log.print(
        "causality: all {} scores that have later tokens were made again without "
        "their own, in {} turns, {}, and were the same to the bit (seed {})",
        checks.cuts, checks.turns, who, checks.seed);
  } else {
    log.print(
        "causality: {} scores in {} of {} turns were made again without their own "
        "and later tokens, {}, and were the same to the bit (seed {}); reading "
        "ahead in one score of {:.0f}, or in one turn of {:.1f}, is found with 99 %",
        checks.cuts, checks.turns, checks.all_turns, who, checks.seed, found_one_in(checks.cuts),
        found_one_in(checks.turns));
  }
  if (checks.proposals > 0)
    log.print("causality: all {} proposals of the score transform were the same there", checks.proposals);
  if (!checks.own_process) return;
  if (!checks.run.missing.empty() || !checks.process.missing.empty()) {
    log.print("warning: plugins could reach, in this process: {}; in the one that checks: {}",
              checks.run.missing.empty() ? "nothing" : checks.run.missing,
              checks.process.missing.empty() ? "nothing" : checks.process.missing);
  }
}

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

// What is scored, on what, and that it may be.
void introduce(const Attempt& attempt, const Backend& backend, RunLog& log) {
  const RunConfig& config = attempt.loaded.config;
  const ValidationSet& validation = attempt.validation;
  say_preloaded(config.ledger, attempt.ranks.group(), log);
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

// Scores the documents. A run that is void leaves no score, none of an earlier run that could be taken for its own,
// and no state that could be continued.
TttReport score_documents(const Attempt& attempt, TttScorer& scorer,
                          const std::optional<TttStanding>& standing, std::span<const float> reference,
                          Backend& backend, MadeOnDevice& made) {
  backend.synchronize();
  made.clock_starts();
  attempt.clock.enter("ttt");
  try {
    TttReport report = scorer.run(standing ? &*standing : nullptr);
    backend.synchronize();  // the clock ends when the device has
    made.clock_stops();
    const std::string problem = floor_problem(scorer.book(), attempt.validation.tokens, reference,
                                              attempt.loaded.config.model.vocabulary);
    if (!problem.empty()) throw VoidRun(problem);
    return report;
  } catch (const VoidRun& reason) {
    attempt.saver.finish();
    if (!attempt.directory.empty())
      write_file_atomically(RunFiles{attempt.directory}.ttt_result(), void_ttt_json(reason.what()));
    throw;
  }
}

// Totals and times of the scores that `result` has the report of.
void fill_totals(const Attempt& attempt, const Backend& backend, TttResult& result) {
  TttSaver& saver = attempt.saver;
  result.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
  result.setup_seconds = saver.seconds("ttt_setup");
  result.with = eval_result(result.report.sums, saver.seconds("ttt"));
  result.with.data = attempt.validation.data;
  if (result.report.reference.tokens == 0) return;
  result.without = eval_result(result.report.reference, saver.seconds("ttt_plain"));
  result.without->data = attempt.validation.data;
}

void log_result(const TttResult& result, RunLog& log) {
  log.line(bins_text(result.report));
  log_checks(log, result.report.checks);
  if (result.without) log.result(fmt::format("without test-time training: {}", score_text(*result.without)));
  if (result.report.untransformed.tokens > 0) {
    log.result(fmt::format("  of it without '{}':      {}", result.transform,
                           score_text(eval_result(result.report.untransformed, 0))));
  }
  log.result(
      fmt::format("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds));
}

TttResult score(const Attempt& attempt) {
  LoadedConfig& loaded = attempt.loaded;
  PluginHost& host = attempt.host;
  RunRanks& ranks = attempt.ranks;
  TttSaver& saver = attempt.saver;
  resolve_run_plugins(loaded, host, PluginUse::adapt);
  require_own_scoring_code(loaded, host, PluginUse::adapt);
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
  const std::vector<float>& reference = saver.progress().reference;
  // Its tensors are uploaded once; the copy here goes with the end of the set-up.
  const std::optional<TttStanding> standing = std::move(saver.progress().standing);
  saver.progress().standing.reset();
  const std::vector<std::int64_t> done = standing ? standing->done : std::vector<std::int64_t>();
  if (standing) log.print("continues after {} batches", done.size());

  const PhiloxDraws draws(static_cast<std::uint64_t>(config.run.seed));
  TttSetup setup = rule.setup(config, draws);
  setup.lanes = attempt.lanes;
  setup.blind = attempt.blind;
  setup.full_audit = attempt.options.audit == TttAudit::full;
  setup.confinement = attempt.confinement;
  setup.full_for_kernels = config.ledger.rules == LedgerRules::strict;
  setup.communicator = exchange.communicator.get();
  setup.losses = losses;
  const TttData data{attempt.validation.tokens, attempt.validation.bos_id, attempt.validation.counter(),
                     reference};
  Listeners listeners(attempt, log, standing, done);
  std::optional<TttScorer> scorer;
  plan_scorer(attempt, model, setup, data, listeners.all, log, scorer);
  if (attempt.lanes > 1)
    log.print("{} lanes of batches on {}", attempt.lanes, ranks_text(ranks.group().world_size()));
  listeners.lines.begin(*scorer, done.size());
  MadeOnDevice made([&] { return std::vector<const Backend*>{&backend}; });
  result.report = score_documents(attempt, *scorer, standing, reference, backend, made);
  listeners.lines.end();
  result.made = made.counts(ranks.group());
  if (ranks.first()) {
    fill_totals(attempt, backend, result);
    log_result(result, log);
  }
  require_true_processes(config.ledger, ranks.group(), log);
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

// score() in a thread that reaches nothing but what it needs, so that plugins cannot read the validation data.
TttResult score_confined(Attempt& attempt) {
  LoadedConfig& loaded = attempt.loaded;
  const fs::path& directory = attempt.directory;
  if (loaded.config.backend.plugin != "cpu") {
    attempt.confinement.missing = fmt::format("files, sockets and programs (the backend '{}' may need them)",
                                              loaded.config.backend.plugin);
    return score(attempt);
  }
  ReachableFiles files = files_for_scoring(loaded, attempt.host);
  if (!loaded.config.data.tokenizer.empty()) files.read.emplace_back(loaded.config.data.tokenizer);
  const bool made = !directory.empty() && fs::create_directories(directory);
  const bool audit_alone = directory.empty() && !loaded.config.ttt->config.audit.empty();
  add_files_of_run(files, audit_alone ? fs::path(".") : directory, attempt.options.weights);
  const std::string reachable = reachable_validation(loaded, files);
  std::vector<int> untouchable;
  if (attempt.blind) untouchable.push_back(attempt.blind->descriptor());
  TttResult result;
  try {
    run_in_thread([&] {
      Confinement confined = confine_files(files);
      if (confined.files && !reachable.empty()) confined = {false, false, reachable};
      attempt.confinement = both(confined, confine_calls_of(loaded, !attempt.ranks.alone(), untouchable));
      result = score(attempt);
    });
  } catch (const Error&) {
    std::error_code failed;
    if (made) fs::remove(directory, failed);  // where it is empty
    throw;
  }
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
  require_scorable(loaded, options.audit == TttAudit::same_process);
  const std::string audit_name = loaded.config.ttt->config.audit;
  std::optional<DirectoryLock> lock;
  if (!directory.empty()) {
    lock.emplace(directory, "ttt");
    remove_temporary_leftovers(directory);
  }
  if (!audit_name.empty() && ranks.first()) require_audit_file(directory / audit_name);
  // Before any plugin is loaded: what is read later is read where plugins are at work.
  const ValidationSet validation = scored_validation(loaded.config);
  require_strict_validation(loaded.config, validation);
  std::optional<BlindChecker> blind;
  if (!options.checker.empty() && options.audit != TttAudit::same_process) blind.emplace(options.checker);
  Attempt attempt{loaded,    host,  origin, load,  options,    ranks,
                  directory, lanes, clock,  saver, validation, blind ? &*blind : nullptr,
                  {}};
  TttResult result = options.checker.empty() ? score(attempt) : score_confined(attempt);
  // Outside of the thread that is confined: it reads and writes what plugins may not.
  if (options.on_result && ranks.first()) options.on_result(result);
  return result;
}

}  // namespace mulligan

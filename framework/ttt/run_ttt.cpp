#include "framework/ttt/run_ttt.h"

#include <cmath>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/clock_check.h"
#include "framework/run/replaced_run.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_identity.h"
#include "framework/run/scoring_code.h"
#include "framework/run/strict_validation.h"
#include "framework/ttt/audit_log.h"
#include "framework/ttt/base_model.h"
#include "framework/ttt/batch_lines.h"
#include "framework/ttt/plain_scorer.h"
#include "framework/ttt/score_floor.h"
#include "framework/ttt/scored_validation.h"
#include "framework/ttt/scoring_files.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_metrics.h"
#include "framework/ttt/ttt_plugins.h"
#include "framework/ttt/ttt_run.h"
#include "framework/ttt/ttt_saver.h"
#include "framework/ttt/ttt_text.h"

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

// [ttt] lanes, for so many ranks.
std::int64_t lanes_for(const LoadedConfig& loaded, int world_size) {
  const std::int64_t lanes = loaded.config.ttt->config.lanes;
  if (lanes == 0) return world_size;
  if (lanes >= world_size) return lanes;
  throw config_error(
      "{} is {}, but there are {} ranks, some of which would have "
      "nothing to do; set it to at least that, or start fewer.",
      loaded.config.ttt->settings.where("lanes"), lanes, world_size);
}

std::string ranks_text(int world_size) {
  return world_size == 1 ? "one rank" : fmt::format("{} ranks", world_size);
}

void require_whole_set(const RunConfig& config) {
  if (config.ledger.rules != LedgerRules::strict || config.ttt->config.document_fraction == 1.0) return;
  throw config_error(
      "ttt.document_fraction = {} leaves documents out, and under ledger.rules = \"strict\" a result is of "
      "the whole set; set it to 1.",
      config.ttt->config.document_fraction);
}

// Its steps have no scale of the loss ([loss_scale]), and gradients of single windows are small.
void require_wide_exponent(const RunConfig& config) {
  if (scored_dtype(config) != Precision::fp16) return;
  throw config_error(
      "train.compute_dtype = \"fp16\" is for training, whose loss is scaled; test-time training has no "
      "such scale, and its gradients would vanish: score with --set train.compute_dtype=bf16, or fp32.");
}

// Proposals in the order of the files know documents that are scored after the ones that they are for.
void require_valid_order(const LoadedConfig& loaded) {
  const TttSection& ttt = *loaded.config.ttt;
  if (!ttt.transform || ttt.transform_order != TransformOrder::file) return;
  const std::string key = ttt.transform->host.where("text_order");
  if (ttt.config.document_fraction < 1) {
    throw config_error(
        "{} is \"file\", which tells the transform the documents that "
        "ttt.document_fraction = {} leaves out, too; take \"queue\" or \"document\".",
        key, ttt.config.document_fraction);
  }
  if (loaded.config.ledger.rules != LedgerRules::strict) return;
  throw config_error(
      "{} is \"file\": proposals then know documents that are scored later, so no order makes the scores one "
      "product of conditional probabilities, and ledger.rules = \"strict\" refuses them; take \"queue\" or "
      "\"document\".",
      key);
}

void require_checkable(const LoadedConfig& loaded, const TttOptions& options) {
  if (loaded.config.ledger.rules != LedgerRules::strict || options.audit != TttAudit::same_process) return;
  throw config_error(
      "--audit same-process lets a plugin that remembers deceive the check of scores, and ledger.rules = "
      "\"strict\" refuses it; leave it out.");
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

TttResult score(Attempt& attempt);

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
  require_whole_set(loaded.config);
  require_wide_exponent(loaded.config);
  require_valid_order(loaded);
  require_checkable(loaded, options);
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
  // Outside of the thread that is confined: it reads and writes what plugins may not.
  const auto hand_on = [&](TttResult result) {
    if (options.on_result && ranks.first()) options.on_result(result);
    return result;
  };
  if (options.checker.empty()) return hand_on(score(attempt));
  if (loaded.config.backend.plugin != "cpu") {
    attempt.confinement.missing = fmt::format("files, sockets and programs (the backend '{}' may need them)",
                                              loaded.config.backend.plugin);
    return hand_on(score(attempt));
  }
  ReachableFiles files = files_for_scoring(loaded, host);
  if (!loaded.config.data.tokenizer.empty()) files.read.emplace_back(loaded.config.data.tokenizer);
  const bool made = !directory.empty() && fs::create_directories(directory);
  add_files_of_run(files, directory.empty() && !audit_name.empty() ? fs::path(".") : directory,
                   options.weights);
  const std::string reachable = reachable_validation(loaded, files);
  std::vector<int> untouchable;
  if (blind) untouchable.push_back(blind->descriptor());
  TttResult result;
  try {
    run_in_thread([&] {
      Confinement confined = confine_files(files);
      if (confined.files && !reachable.empty()) confined = {false, false, reachable};
      attempt.confinement = both(confined, confine_calls_of(loaded, !ranks.alone(), untouchable));
      result = score(attempt);
    });
  } catch (const Error&) {
    std::error_code failed;
    if (made) fs::remove(directory, failed);  // where it is empty
    throw;
  }
  return hand_on(std::move(result));
}

namespace {

TttResult score(Attempt& attempt) {
  LoadedConfig& loaded = attempt.loaded;
  PluginHost& host = attempt.host;
  const TttOptions& options = attempt.options;
  RunRanks& ranks = attempt.ranks;
  const fs::path& directory = attempt.directory;
  Ledger& clock = attempt.clock;
  TttSaver& saver = attempt.saver;
  const ValidationSet& validation = attempt.validation;
  const WeightOrigin& origin = attempt.origin;
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
  RunLog log(options, {});
  say_preloaded(config.ledger, log);

  const std::span<const std::uint16_t> tokens = validation.tokens;
  ranks.require_same_data(validation.data);
  if (!validation.note.empty()) log.line(validation.note);
  if (!validation.byte_note.empty()) log.line(validation.byte_note);
  for (const std::string& note : require_data_of(origin, validation.data, config.data)) log.line(note);
  require_equal_bytes(validation, config.ttt->config);
  log.print("test-time training on {} tokens with '{}' on {}", tokens.size() - 1, origin.name,
            backend.info().description);

  LoadedModel weights(backend, config, base_masters(*config.ttt));
  weights.load(attempt.load);
  const BaseModel model = base_model(weights, config);

  TttResult result;
  result.weights = origin.name;
  result.weights_sha256 = origin.sha256;
  if (config.ttt->transform) {
    result.transform = config.ttt->transform->plugin;
    result.transform_order = transform_order_word(config.ttt->transform_order);
    result.contested = config.ttt->transform_order == TransformOrder::file;
  }
  if (result.contested) {
    log.print(
        "warning: ttt.transform.text_order = \"file\" is the published record's way and contested: "
        "proposals know documents that are scored later; \"queue\" and \"document\" do not");
  }
  std::unique_ptr<Communicator> communicator;
  std::optional<LossExchange> losses;
  if (!ranks.alone() || !directory.empty()) {
    const ScoreIdentity identity =
        score_identity(loaded, ScoreCommand::ttt, host, weights.store(), weights.layouts(), tokens);
    if (ranks.alone()) {
      saver.open({directory / "ttt.state", identity, config.eval.save_seconds, options.resume});
    } else {
      ranks.require_same(identity);
      communicator = ranks.communicator(loaded, host, backend);
      losses.emplace(weights.store(), *communicator, static_cast<std::int64_t>(tokens.size()));
    }
  }
  if (config.ttt->config.on_collapse != OnCollapse::off) {
    PlainScorer scorer(model, config, validation.bos_id);
    clock.enter("ttt_plain");
    score_reference(scorer, tokens, saver, log, ranks);
    backend.synchronize();  // the clock ends when the device has
    if (losses) losses->merge(saver.progress().reference);
    clock.enter("ttt_setup");
  }
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
  setup.full_audit = options.audit == TttAudit::full;
  setup.full_for_kernels = config.ledger.rules == LedgerRules::strict;
  setup.communicator = communicator.get();
  if (losses) setup.losses = &*losses;
  const TttData data{tokens, validation.bos_id, validation.counter(), reference};
  BatchLines lines(log, config.ttt->config);
  TttListener* listener = &lines;
  std::optional<TttMetrics> metrics;
  if (!directory.empty()) {
    fs::create_directories(directory);
    listener = &metrics.emplace(directory / "metrics.jsonl", config.ttt->config, listener, standing);
  }
  std::optional<AuditLog> audit;
  if (!config.ttt->config.audit.empty() && ranks.first())
    listener = &audit.emplace(directory / config.ttt->config.audit, listener, done);
  std::optional<TttRun> planned;
  try {
    Progress planning(&log, ProgressPhase{.what = "planning test-time training", .ticks = true});
    planned.emplace(model, setup, data, listener);
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted) saver.interrupted();
    throw;
  }
  TttRun& run = *planned;
  run.at_boundaries([&] { saver.between_batches(run); },
                    [&] {
                      ranks.note_step();
                      ranks.require_running();
                      saver.between_chunks();
                    });
  if (attempt.lanes > 1)
    log.print("{} lanes of batches on {}", attempt.lanes, ranks_text(ranks.group().world_size()));
  lines.begin(run, done.size());

  backend.synchronize();
  clock.enter("ttt");
  try {
    result.report = run.run(standing ? &*standing : nullptr);
    backend.synchronize();  // the clock ends when the device has
    const std::string problem = floor_problem(run.book(), tokens, reference, config.model.vocabulary);
    if (!problem.empty()) throw VoidRun(problem);
  } catch (const VoidRun& reason) {
    // No score, and none of an earlier run that could be taken for this one's; nothing to
    // be continued either.
    saver.finish();
    if (!directory.empty())
      write_file_atomically(RunFiles{directory}.ttt_result(), void_ttt_json(reason.what()));
    throw;
  }
  lines.end();
  result.report.checks.run = attempt.confinement;
  if (!ranks.first()) return result;
  result.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
  result.setup_seconds = saver.seconds("ttt_setup");
  result.with = eval_result(result.report.sums, saver.seconds("ttt"));
  result.with.data = validation.data;
  if (result.report.reference.tokens > 0) {
    result.without = eval_result(result.report.reference, saver.seconds("ttt_plain"));
    result.without->data = validation.data;
  }
  log.line(bins_text(result.report));
  log_checks(log, result.report.checks);
  if (result.without) log.result(fmt::format("without test-time training: {}", score_text(*result.without)));
  if (result.report.untransformed.tokens > 0) {
    log.result(fmt::format("  of it without '{}':      {}", result.transform,
                           score_text(eval_result(result.report.untransformed, 0))));
  }
  log.result(
      fmt::format("with test-time training:    {}, {:.1f} s", score_text(result.with), result.with.seconds));
  require_true_clocks(config.ledger, log);
  if (metrics) {
    metrics->finish(result);
    write_file_atomically(RunFiles{directory}.ttt_result(), ttt_json(result));
  }
  saver.finish();
  const RunLedger ledger =
      close_entry(ledger_entry(result, options.quantised), directory, config.ledger, log);
  log.result("\n" + ledger_table(config.ledger, ledger));
  return result;
}

}  // namespace

}  // namespace mulligan

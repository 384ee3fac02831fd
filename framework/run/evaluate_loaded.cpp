#include "framework/run/evaluate_loaded.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_state.h"
#include "framework/run/strict_rules.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* phase = "evaluate";

// The loss is a tensor of its own, for its bits.
void save(ScoreState& state, const EvalPosition& position, double seconds) {
  const double loss[] = {position.sums.loss_nats};
  const Json json{{"row", position.row}, {"tokens", position.sums.tokens}, {"bytes", position.sums.bytes}};
  state.save({{"loss_sum_nats", MLG_F64, {1}, std::as_bytes(std::span(loss))}}, {{"evaluation", json.dump()}},
             {{phase, seconds}});
}

EvalPosition read(const SafetensorsFile& file) {
  return read_as_written(file.path(), "start without --resume", [&] {
    const Json json = parse_json<Json>(file.metadata().at("evaluation"));
    EvalPosition position;
    position.row = json.at("row");
    position.sums.loss_nats = file.at("loss_sum_nats").copy<double>().at(0);
    position.sums.tokens = json.at("tokens");
    position.sums.bytes = json.at("bytes");
    return position;
  });
}

// evaluate(), with the same result to the bit however often it was interrupted. One rank alone keeps a state in `files`;
// `identity` is asked for only then. The result's seconds are those of all attempts. After a signal, throws an Error of
// ExitCode::interrupted once the state is saved.
EvalResult evaluate_resumably(Evaluator& evaluator, ValidationSet& validation, RunRanks& ranks,
                              const ScoreFiles& files, double save_seconds,
                              const std::function<ScoreIdentity()>& identity, RunLog& log) {
  const double start = steady_seconds();
  std::optional<ScoreState> state;
  EvalPosition position;
  if (ranks.alone() && !files.directory.empty())
    state.emplace(
        ScoreState::Options{files.directory / "eval.state", identity(), save_seconds, files.resume});
  if (state && state->found()) {
    position = read(*state->found());
    log.print("continues after {} scored tokens", position.sums.tokens);
  } else if (files.resume) {
    log.print("nothing was saved yet, so this begins at the beginning");
  }
  ProgressPhase shown{.what = "evaluation", .unit = "tokens"};
  shown.total = static_cast<double>(validation.tokens.size() - 1);
  shown.done = static_cast<double>(position.sums.tokens);
  Progress progress(&log, shown);
  const EvalPosition from = position;
  const auto watch = [&](const EvalPosition& now, std::size_t rows) {
    ranks.note_step();
    ranks.require_running();
    position = now;
    progress.set(shown.total * static_cast<double>(now.row) / static_cast<double>(rows));
    if (!state) return;
    const double seconds = steady_seconds() - start;
    if (state->due()) save(*state, position, seconds);
    state->book({{phase, seconds}});
  };
  try {
    EvalResult result = evaluate(evaluator, validation, ranks.group(), watch, &from);
    if (!state) return result;
    const auto earlier = state->earlier_seconds().find(phase);
    if (earlier != state->earlier_seconds().end()) result.seconds += earlier->second;
    state->finish();
    return result;
  } catch (const Error& error) {
    if (!state || error.code() != ExitCode::interrupted) throw;
    save(*state, position, steady_seconds() - start);
    throw state->stopped();
  }
}

}  // namespace

ValidationSet open_validation(const RunConfig& config, const WeightOrigin& origin, RunLog& log,
                              RunRanks* ranks) {
  ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  require_strict_validation(config, validation);
  if (!validation.note.empty()) log.line(validation.note);
  if (!validation.byte_note.empty()) log.line(validation.byte_note);
  validation.data.packing = packing_text(config.eval, config.model, validation.joined);
  if (ranks) ranks->require_same_data(validation.data);
  for (const std::string& note : require_data_of(origin, validation.data, config.data)) log.line(note);
  return validation;
}

EvalResult evaluate_loaded(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                           const WeightLoader& load, const ConsoleOptions& options, const ScoreFiles& files,
                           RunRanks& ranks) {
  if (!ranks.alone() && files.resume) {
    throw config_error("an evaluation by several ranks keeps no state; leave out --resume.");
  }
  resolve_run_plugins(loaded, host, PluginUse::score);
  ranks.require_same_run(loaded, host);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "nothing can be scored");
  RunLog log(options, {});
  ValidationSet validation = open_validation(config, origin, log, &ranks);
  log.print("scoring {} tokens with '{}' on {}", validation.tokens.size() - 1, origin.name,
            backend.info().description);

  LoadedModel model(backend, config, LoadedModel::Masters::scored);
  BoundEvaluator scoring(model.store(), config.model, model.layouts(),
                         {config.eval, scored_order(config.model), validation.segment_start()});
  model.load(load);
  const auto identity = [&] {
    return score_identity(loaded, ScoreCommand::eval, host, model.store(), model.layouts(),
                          validation.tokens);
  };
  if (!ranks.alone()) ranks.require_same(identity());
  const EvalResult result = evaluate_resumably(scoring.evaluator, validation, ranks, files,
                                               config.eval.save_seconds, identity, log);
  require_whole_score(config.ledger, result);
  log.result(score_text(result));
  return result;
}

}  // namespace mulligan

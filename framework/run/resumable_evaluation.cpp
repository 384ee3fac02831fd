#include "framework/run/resumable_evaluation.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/core/stop_request.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/run/ledger.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* phase = "evaluate";

// The loss is a tensor of its own, for its bits.
void save(ScoreState& state, const EvalPosition& position, double seconds) {
  const double loss[] = {position.sums.loss_nats};
  const Json json{{"row", position.row}, {"tokens", position.sums.tokens}, {"bytes", position.sums.bytes}};
  state.save({{"loss_sum_nats", StoredType::f64, {1}, std::as_bytes(std::span(loss))}},
             {{"evaluation", json.dump()}}, {{phase, seconds}});
}

EvalPosition read(const SafetensorsFile& file) {
  try {
    const Json json = parse_json<Json>(file.metadata().at("evaluation"));
    EvalPosition position;
    position.row = json.at("row");
    position.sums.loss_nats = file.at("loss_sum_nats").copy<double>().at(0);
    position.sums.tokens = json.at("tokens");
    position.sums.bytes = json.at("bytes");
    return position;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw data_error("'{}' is not as mulligan writes it ({}); start without --resume.", file.path().string(),
                     error.what());
  }
}

}  // namespace

Error stopped_error(const ScoreState& state) {
  if (!state.saved()) {
    return Error(ExitCode::interrupted,
                 fmt::format("stopped by {} before a state was saved; the same command begins anew.",
                             signal_name(stop_signal())));
  }
  return Error(ExitCode::interrupted,
               fmt::format("stopped by {}; the state is '{}'; continue with the same command and --resume.",
                           signal_name(stop_signal()), state.file().string()));
}

EvalResult evaluate_resumably(Evaluator& evaluator, ValidationSet& validation, HostGroup& group,
                              const ScoreFiles& files, double save_seconds,
                              const std::function<ScoreIdentity()>& identity, RunLog& log,
                              const std::function<void()>& passed) {
  const double start = steady_seconds();
  std::optional<ScoreState> state;
  EvalPosition position;
  if (!files.directory.empty())
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
    passed();
    position = now;
    progress.set(shown.total * static_cast<double>(now.row) / static_cast<double>(rows));
    if (!state) return;
    const double seconds = steady_seconds() - start;
    if (state->due()) save(*state, position, seconds);
    state->book({{phase, seconds}});
  };
  try {
    EvalResult result = evaluate(evaluator, validation, group, watch, &from);
    if (!state) return result;
    const auto earlier = state->earlier_seconds().find(phase);
    if (earlier != state->earlier_seconds().end()) result.seconds += earlier->second;
    state->finish();
    return result;
  } catch (const Error& error) {
    if (!state || error.code() != ExitCode::interrupted) throw;
    save(*state, position, steady_seconds() - start);
    throw stopped_error(*state);
  }
}

}  // namespace mulligan

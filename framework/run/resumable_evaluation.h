// An evaluation that shows its progress, saves its state and continues it.
#pragma once

#include <filesystem>
#include <functional>

#include "framework/core/error.h"
#include "framework/eval/evaluate.h"
#include "framework/run/score_state.h"

namespace mulligan {

class HostGroup;
class RunLog;

// Where a scoring keeps the state from which --resume continues it.
struct ScoreFiles {
  std::filesystem::path directory;  // empty: no state is kept
  bool resume = false;  // continue the state that lies there; from the beginning where there is none
};

// evaluate(), with the same result to the bit however often it was interrupted. `identity` is asked for only
// where a state is kept. The result's seconds are those of all attempts. Throws as evaluate(); after a
// signal, an Error of ExitCode::interrupted once the state is saved. `passed` is called after each pass.
EvalResult evaluate_resumably(Evaluator& evaluator, ValidationSet& validation, HostGroup& group,
                              const ScoreFiles& files, double save_seconds,
                              const std::function<ScoreIdentity()>& identity, RunLog& log,
                              const std::function<void()>& passed);

// "stopped by SIGTERM; the state is 'RUN/eval.state'; continue with the same command and --resume.", or that
// nothing was saved yet.
Error stopped_error(const ScoreState& state);

}  // namespace mulligan

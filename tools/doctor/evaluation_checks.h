// Checks of how a model is scored: D15 to D18, and the mean of D28.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "framework/config/run_config.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

// D15: the losses of a segment do not depend on what stands next to it in the row, nor on where it stands.
Finding check_neighbours(Backend& backend, const RunConfig& config, ComputeTypes compute);

// D16: token losses do not depend on what memory held before: it is filled with numbers that are none,
// then with others, and every bit must be the same, or, where the backend does not promise repeated bits
// (`repeats`), within 1e-6.
Finding check_memory(EvaluationProbe& probe, bool repeats);

// D16, of a run's own evaluation: `score` gives the summed loss of the same tokens, `disturb` lets
// training use the memory that both share.
Finding check_repeated_score(const std::function<double()>& score, const std::function<void()>& disturb,
                             bool repeats);

// D17: training and evaluation give the same row the same loss. `excess_nats`: what the training loss of
// equal logits lies above ln V (a regulariser, D01); then the two are not the same number, and this is a
// warning. Nothing: the training loss is no cross entropy, and the two are not compared.
Finding judge_modes(double training_nats, double evaluation_nats, std::optional<double> excess_nats,
                    DType compute);

// D18: waiting after every call changes no bit, and a call that cannot be is refused.
Finding check_order(Backend& backend, EvaluationProbe& probe, bool repeats);

// D28, of an evaluation: the mean is that over tokens. `scored` is what an evaluation of rows of
// different lengths says, `losses` the losses of all its tokens.
struct ScoredMean {
  double mean_nats = 0;
  std::uint64_t tokens = 0;
};
Finding check_mean(const ScoredMean& scored, const std::vector<float>& losses);

// What a run's own evaluation says of rows of different lengths: D28.

// Scores some drawn tokens, of which the last row is short, by evaluate(), and holds its mean against
// the losses of all tokens. Takes memory on `backend` for the model and two short rows.
Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights);

}  // namespace mulligan::doctor

// What a loss or a model's logits may be before anything is learned, or after: D09 to D11.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/config/model_config.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D09, two-sided: of initial weights. Normal logits of deviation s have a loss of ln V + s^2/2.
Finding judge_initial_loss(double loss_nats, const ModelConfig& model);

// D10: of weights that have been trained before; `floor_nats` is what no model can be below (loss_floor).
Finding judge_trained_loss(double loss_nats, int vocabulary, double floor_nats);

// 0.3 of the entropy of a token given the one before: a smaller loss is no achievement but a mistake. 0 for a
// model that fills in masked tokens: those on both sides tell more than the one before.
double loss_floor(const ModelConfig& model, double bigram_nats);

// D11, of logits [prompts * positions, vocabulary]: finite, spread, with a peak, not always the same
// token, not at the softcap.
Finding judge_logits(const std::vector<double>& logits, const ModelConfig& model);

}  // namespace mulligan::doctor

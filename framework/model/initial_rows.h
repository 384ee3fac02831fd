// The rows of [[init.values]], applied to a model's parameters.
#pragma once

#include <span>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Gives each parameter, and each matrix of a bank, that a row matches the initial values of the first such row. Throws config_error where a
// row is the first of no parameter, or asks a parameter for `signs` that has no layer, or no whole heads of channels.
void apply_initial_rows(const ModelConfig& model, std::span<const InitialValuesRow> rows,
                        std::vector<ParameterLayout>& layouts);

}  // namespace mulligan

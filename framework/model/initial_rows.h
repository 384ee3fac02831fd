// The rows of [[init.values]], applied to a model's parameters.
#pragma once

#include <span>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// The first row that matches a parameter, or a matrix of a bank, sets its initial values. Throws config_error if a row is the
// first one of no parameter. Also throws if a row asks for `signs` of a parameter without a layer, or without whole heads of
// channels.
void apply_initial_rows(const ModelConfig& model, std::span<const InitialValuesRow> rows,
                        std::vector<ParameterLayout>& layouts);

}  // namespace mulligan

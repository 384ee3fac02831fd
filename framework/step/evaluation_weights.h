// Weights that an optimiser has scored and saved in its masters' place (schedule-free optimisers): one more
// tensor per parameter, which the optimiser writes from masters and states whenever somebody is about to read
// it. Training never sees it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/run/parameter_plan.h"
#include "framework/step/optimizer_groups.h"

namespace mulligan {

// "evaluation/NAME", f32; "evaluation_compute/NAME": the copy that kernels read where the
// compute dtype differs.
std::string evaluation_name(std::string_view parameter);
// What one of `world_size` ranks writes of it: the whole, or the slice of a cut parameter.
std::string updated_evaluation_name(const PlannedParameter& parameter, int world_size);

// Whether the parameter's optimiser has evaluation weights.
bool has_evaluation_weights(const PlannedParameter& parameter, const OptimizerGroups& groups);
bool has_evaluation_weights(const OptimizerGroups& groups);

// The calls by which one of `world_size` ranks writes all evaluation weights, of cut parameters those of its
// slices; behind them the copies, which need them whole. Empty where no optimiser has any.
struct EvaluationGraph {
  Graph graph;
  std::size_t copies = 0;  // the first call that makes copies
};
EvaluationGraph build_evaluation_weights(const std::vector<PlannedParameter>& parameters,
                                         const OptimizerGroups& groups, int world_size);

// The layouts under which a forward pass reads what is scored: evaluation weights where there are any, the
// masters of all other parameters.
std::vector<ParameterLayout> evaluation_layouts(const std::vector<PlannedParameter>& parameters,
                                                const OptimizerGroups& groups);

// The tensor that holds what is saved of a parameter: its average (with `averaged`), its evaluation weights,
// or its master.
std::string saved_tensor(const PlannedParameter& parameter, const OptimizerGroups& groups, bool averaged);

}  // namespace mulligan

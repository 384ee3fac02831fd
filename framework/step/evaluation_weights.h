// Weights that are scored and saved in the masters' place: one more tensor per parameter, written whenever somebody
// is about to read it, by an optimiser from masters and states (schedule-free optimisers), or from weights at rest
// and averages (blends_scores). Training never sees it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/run/parameter_plan.h"
#include "framework/step/optimizer_groups.h"

namespace mulligan {

// "evaluation/NAME", f32.
std::string evaluation_name(std::string_view parameter);
// What one of `world_size` ranks writes of it: the whole, or the slice of a cut parameter.
std::string updated_evaluation_name(const PlannedParameter& parameter, int world_size);

// Whether the parameter has evaluation weights, and whether any has.
bool has_evaluation_weights(const PlannedParameter& parameter, const OptimizerGroups& groups);
bool has_evaluation_weights(const OptimizerGroups& groups);

// The calls by which one of `world_size` ranks writes all evaluation weights, of cut parameters those of its slices, or of
// blends the whole. Empty where there are none.
Graph build_evaluation_weights(const RunConfig& config, const std::vector<PlannedParameter>& parameters,
                               const OptimizerGroups& groups, int world_size);

// The tensor that holds what is saved of a parameter: its average (with `averaged`), its evaluation weights,
// or its master.
std::string saved_tensor(const PlannedParameter& parameter, const OptimizerGroups& groups, bool averaged);

// The layouts under which a forward pass reads these, and the casts that bring the copies up to date that it reads where the
// compute dtype differs ("ema_compute/NAME", "evaluation_compute/NAME").
std::vector<ParameterLayout> scored_layouts(const std::vector<PlannedParameter>& parameters,
                                            const OptimizerGroups& groups, bool averaged);
Graph build_scored_copies(const std::vector<PlannedParameter>& parameters, const OptimizerGroups& groups,
                          bool averaged);

}  // namespace mulligan

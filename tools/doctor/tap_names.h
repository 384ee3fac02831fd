// What the calls of a forward pass are, in the words of the field: "o_proj of layer 3".
#pragma once

#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/graph/graph.h"
#include "framework/model/parameter_values.h"

namespace mulligan::doctor {

// A name for each call of `graph`, which reads its parameters as `layouts` say: from the parameters that
// it reads, and of calls that read none from those around them.
std::vector<std::string> tap_names(const Graph& graph, const ModelConfig& model,
                                   const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan::doctor

// Calls of a graph in words.
#pragma once

#include <string>

#include "framework/graph/graph.h"

namespace mulligan {

// "[2048, 512] [2048, 512] [2048, 2048]", of the arguments that are not absent.
std::string shape_text(const Graph& graph, const Call& call);

}  // namespace mulligan

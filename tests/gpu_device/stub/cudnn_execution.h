// How cuDNN's stub computes a graph: operation by operation, one sequence of the batch after another. It uses no knowledge
// of attention that engines have, so results are those that the graph means.
#pragma once

#include <cstdint>
#include <map>

#include "tests/gpu_device/stub/cudnn_rules.h"

namespace stub_cudnn {

// The numbers that an execution hands over from the host, by id; read at the call.
using Numbers = std::map<std::int64_t, float>;
Numbers numbers_of(const Graph& graph, const Execution& execution);

// Of packed rows as many tokens are read and written as the row has. An operation that is not known is a violation.
void execute(const Graph& graph, const Execution& execution, const Numbers& numbers);

}  // namespace stub_cudnn

// A parallel loop for host-side work outside of the step.
#pragma once

#include <cstddef>
#include <functional>

namespace mulligan {

// Calls body(i) once for every i in 0..count-1 from up to `threads` threads (0: one per core), in no
// fixed order. Returns when all calls are done; the first exception stops the hand-out of further items
// and is rethrown here.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace mulligan

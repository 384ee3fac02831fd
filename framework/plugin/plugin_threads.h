// The host's loop over pieces for plugins that work on host memory.
#pragma once

#include <cstdint>

namespace mulligan {

// Sets the number of threads that plugin_parallel_for uses in this thread (initially 0: one per core). The number is per
// thread, because the loop is a C function without an object.
void set_plugin_threads(int threads);

// parallel_for of the plugin kinds that have one: body over [0, count) in pieces of at least `grain`.
void plugin_parallel_for(std::int64_t count, std::int64_t grain,
                         void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);

}  // namespace mulligan

#include "framework/plugin/plugin_threads.h"

#include <algorithm>

#include "framework/core/parallel.h"

namespace mulligan {
namespace {

thread_local int plugin_threads = 0;

}  // namespace

void set_plugin_threads(int threads) {
  plugin_threads = threads;
}

void plugin_parallel_for(std::int64_t count, std::int64_t grain,
                         void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  // Enough pieces for an even load, none below the grain.
  constexpr std::int64_t pieces = 64;
  const std::int64_t piece = std::max({std::int64_t{1}, grain, (count + pieces - 1) / pieces});
  parallel_for(static_cast<std::size_t>((count + piece - 1) / piece), plugin_threads, [&](std::size_t index) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * piece;
    body(context, begin, std::min(count, begin + piece));
  });
}

}  // namespace mulligan

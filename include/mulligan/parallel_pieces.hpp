// The host's loop over pieces, for several kinds of plugins.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using ParallelFor = void (*)(std::int64_t count, std::int64_t grain,
                             void (*body)(void* context, std::int64_t begin, std::int64_t end),
                             void* context);

// Runs body(begin, end) over pieces of [0, count) of at least `grain`; pieces may run at once. No exception may cross the
// host, so an exception of a piece is thrown again here.
template <typename Body>
void parallel_pieces(ParallelFor parallel_for, std::int64_t count, std::int64_t grain, Body&& body) {
  struct Context {
    std::remove_reference_t<Body>& body;
    std::mutex mutex;
    std::exception_ptr failure;
  } context{body, {}, {}};
  const auto piece = [](void* self, std::int64_t begin, std::int64_t end) {
    auto& shared = *static_cast<Context*>(self);
    try {
      shared.body(begin, end);
    } catch (...) {
      const std::lock_guard lock(shared.mutex);
      if (!shared.failure) shared.failure = std::current_exception();
    }
  };
  parallel_for(count, grain, piece, &context);
  if (context.failure) std::rethrow_exception(context.failure);
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

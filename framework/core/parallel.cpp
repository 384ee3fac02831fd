#include "framework/core/parallel.h"

#include <mulligan/control_group.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace mulligan {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    while (true) {
      const std::size_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  static const int usable = sdk::usable_cpus();
  const std::size_t helpers = std::min(static_cast<std::size_t>(threads > 0 ? threads : usable), count);
  std::vector<std::thread> pool;
  pool.reserve(helpers);
  try {
    for (std::size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The system has no more threads. Those that are there do all of the work: it is the same by any number.
  }
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mulligan

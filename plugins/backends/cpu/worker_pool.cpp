#include "plugins/backends/cpu/worker_pool.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace mulligan::cpu {
namespace {

// How often a thread looks before it sleeps (worker) or yields (caller): some tens of microseconds, longer
// than the serial stretch between two loops of a step.
constexpr int kSpins = 4000;
constexpr std::int64_t kPiecesPerThread = 16;

thread_local int wanted_threads = 1;
thread_local int index_in_loop = 0;
thread_local bool inside_loop = false;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

struct Loop {
  void (*body)(void*, std::int64_t, std::int64_t) = nullptr;
  void* context = nullptr;
  std::int64_t count = 0, length = 0, pieces = 0;
  int threads = 0;
  std::atomic<std::int64_t> next{0};

  void work(int index) {
    index_in_loop = index;
    inside_loop = true;
    for (std::int64_t piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) {
      body(context, piece * length, std::min(count, (piece + 1) * length));
    }
    inside_loop = false;
    index_in_loop = 0;
  }
};

class Pool {
 public:
  ~Pool() {
    stopping_ = true;
    announced_.fetch_add(1);
    announced_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // False when another thread's loop is running.
  bool run(void (*body)(void*, std::int64_t, std::int64_t), void* context, std::int64_t count,
           std::int64_t length, int threads) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) return false;
    while (static_cast<int>(workers_.size()) < threads - 1) {
      workers_.emplace_back([this, index = static_cast<int>(workers_.size()) + 1] { serve(index); });
    }
    loop_.body = body;
    loop_.context = context;
    loop_.count = count;
    loop_.length = length;
    loop_.pieces = (count + length - 1) / length;
    loop_.threads = threads;
    loop_.next = 0;
    const std::uint64_t number = announced_.load() + 1;
    open_ = number;
    announced_ = number;
    announced_.notify_all();
    loop_.work(0);
    open_ = 0;  // from here on no worker enters; those inside are finishing their last piece
    for (int spins = 0; inside_.load() != 0; ++spins) {
      if (spins < kSpins) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
    return true;
  }

 private:
  void serve(int index) {
    omp_set_num_threads(1);  // oneDNN calls made here stay in this thread
    std::uint64_t seen = 0;
    while (true) {
      for (int spins = 0; spins < kSpins && announced_.load(std::memory_order_acquire) == seen; ++spins)
        pause();
      announced_.wait(seen);
      if (stopping_) return;
      seen = announced_.load();
      // Entering is announced before the loop is looked at, closing before the inside is counted (both
      // sequentially consistent): the caller cannot miss a worker that saw an open loop.
      inside_.fetch_add(1);
      if (open_.load() == seen && index < loop_.threads) loop_.work(index);
      inside_.fetch_sub(1);
    }
  }

  std::mutex busy_;
  Loop loop_;
  std::atomic<std::uint64_t> announced_{0};  // number of the last loop
  std::atomic<std::uint64_t> open_{0};       // number of the loop that workers may enter; 0: none
  std::atomic<int> inside_{0};               // workers between entering and leaving
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

void set_thread_count(int threads) {
  wanted_threads = std::max(1, threads);
  if (omp_get_max_threads() != 1)
    omp_set_num_threads(1);  // oneDNN: one thread per matmul, the tiles run in parallel
}

int thread_count() {
  return wanted_threads;
}

int thread_index() {
  return index_in_loop;
}

void parallel_for(std::int64_t count, std::int64_t grain,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  if (count <= 0) return;
  const std::int64_t least = std::max<std::int64_t>(grain, 1);
  const std::int64_t most = (count + least - 1) / least;
  const std::int64_t threads = inside_loop ? 1 : std::min<std::int64_t>(wanted_threads, most);
  if (threads > 1) {
    const std::int64_t pieces = std::min(most, threads * kPiecesPerThread);
    const std::int64_t length = (count + pieces - 1) / pieces;
    if (pool().run(body, context, count, length, static_cast<int>(threads))) return;
  }
  body(context, 0, count);
}

}  // namespace mulligan::cpu

// Work on other threads than the one that asks for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mulligan::cuda {

class BackgroundJobs {
 public:
  // At most so many threads, started as jobs come; 0: one for each core that this process may use.
  explicit BackgroundJobs(int threads);
  // Jobs that were not begun are dropped; waits for those under way.
  ~BackgroundJobs();
  BackgroundJobs(const BackgroundJobs&) = delete;
  BackgroundJobs& operator=(const BackgroundJobs&) = delete;

  // To be begun after all that were added before. A job must not throw, and may add others.
  void add(std::function<void()> job);

 private:
  void work();

  std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_, as is what follows
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace mulligan::cuda

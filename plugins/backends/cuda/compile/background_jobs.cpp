#include "plugins/backends/cuda/compile/background_jobs.h"

#include <mulligan/control_group.hpp>

#include <utility>

namespace mulligan::cuda {

BackgroundJobs::BackgroundJobs(int threads)
    : most_threads_(threads > 0 ? static_cast<std::size_t>(threads)
                                : static_cast<std::size_t>(sdk::usable_cpus())) {}

BackgroundJobs::~BackgroundJobs() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BackgroundJobs::add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  waiting_.push_back(std::move(job));
  if (waiting_.size() > idle_ && threads_.size() < most_threads_) threads_.emplace_back([this] { work(); });
  changed_.notify_one();
}

void BackgroundJobs::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    const std::function<void()> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace mulligan::cuda

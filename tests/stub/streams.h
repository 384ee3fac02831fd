// Streams and events of the drivers' stubs: a stream is a thread that does its work in order, an event is a mark in it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace stubs {

// How often an event was recorded, and how often that was reached.
class Mark {
 public:
  // The number of this recording, which reach() is to be told.
  unsigned long record() {
    const std::lock_guard lock(mutex_);
    return ++recorded_;
  }
  unsigned long recorded() {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  void reach(unsigned long number) {
    const std::lock_guard lock(mutex_);
    reached_ = number > reached_ ? number : reached_;
    reached_signal_.notify_all();
  }
  void wait(unsigned long number) {
    std::unique_lock lock(mutex_);
    reached_signal_.wait(lock, [&] { return reached_ >= number; });
  }
  // Whether all recordings were reached.
  bool is_reached() {
    const std::lock_guard lock(mutex_);
    return reached_ >= recorded_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_signal_;
  unsigned long recorded_ = 0, reached_ = 0;
};
using Event = std::shared_ptr<Mark>;

class Stream {
 public:
  // Hangs after so many pieces of work, as in a kernel that never ends.
  explicit Stream(unsigned long work_before_hanging = ~0ul)
      : work_before_hanging_(work_before_hanging), thread_([this] { run(); }) {}
  // Waits for the work.
  ~Stream() {
    add([this] { ends_ = true; });
    thread_.join();
  }
  Stream(const Stream&) = delete;

  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    signal_.notify_all();
  }
  void record(const Event& event) {
    add([event, number = event->record()] { event->reach(number); });
  }
  // What is added after it comes after what was recorded by now.
  void wait_for(const Event& event) {
    add([event, number = event->recorded()] { event->wait(number); });
  }
  void synchronize() {
    Mark done;
    done.record();
    add([&] { done.reach(1); });
    done.wait(1);
  }

 private:
  void run() {
    while (!ends_) {
      std::unique_lock lock(mutex_);
      if (work_before_hanging_-- == 0) signal_.wait(lock, [] { return false; });
      signal_.wait(lock, [&] { return !work_.empty(); });
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
    }
  }

  std::mutex mutex_;
  std::condition_variable signal_;
  std::deque<std::function<void()>> work_;
  bool ends_ = false;  // of the thread
  unsigned long work_before_hanging_;
  std::thread thread_;
};

}  // namespace stubs

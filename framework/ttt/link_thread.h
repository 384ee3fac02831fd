// A thread that does one thing after the other for whoever asks, who waits for it.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace mulligan {

// What a confined thread may not do itself it can hand to one that was there before (sandbox.h).
class LinkThread {
 public:
  LinkThread();
  ~LinkThread();
  LinkThread(const LinkThread&) = delete;
  LinkThread& operator=(const LinkThread&) = delete;
  // Runs `work` there. What it throws is thrown here. One caller at a time.
  void run(const std::function<void()>& work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr thrown_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace mulligan

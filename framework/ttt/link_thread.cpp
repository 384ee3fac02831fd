#include "framework/ttt/link_thread.h"

#include <utility>

namespace mulligan {

LinkThread::LinkThread() : thread_([this] { serve(); }) {}

LinkThread::~LinkThread() {
  {
    const std::lock_guard hold(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LinkThread::run(const std::function<void()>& work) {
  std::unique_lock hold(mutex_);
  work_ = &work;
  thrown_ = nullptr;
  changed_.notify_all();
  changed_.wait(hold, [&] { return work_ == nullptr; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void LinkThread::serve() {
  std::unique_lock hold(mutex_);
  while (true) {
    changed_.wait(hold, [&] { return ends_ || work_ != nullptr; });
    if (work_ == nullptr) return;
    try {
      (*work_)();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace mulligan

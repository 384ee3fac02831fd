#include "framework/ranks/communicator_watch.h"

#include <chrono>
#include <system_error>

namespace mulligan {
namespace {

template <typename Work>
std::thread started(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw run_error("the system refuses a thread ({}); allow this user more of them (ulimit -u).",
                    error.code().message());
  }
}

}  // namespace

CommunicatorWatch::~CommunicatorWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (counter_.joinable()) counter_.join();
  if (aborter_.joinable()) aborter_.join();
}

void CommunicatorWatch::count_transfers(Count count) {
  std::unique_lock lock(mutex_);
  count_ = {};
  changed_.wait(lock, [&] { return !counting_; });
  counted_ = {};
  count_ = std::move(count);
  if (count_ && !counter_.joinable()) counter_ = started([this] { this->count(); });
  changed_.notify_all();
}

TransferCount CommunicatorWatch::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

void CommunicatorWatch::count() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait(lock, [&] { return ends_ || count_; });
    if (ends_) return;
    const Count asked = count_;
    counting_ = true;
    lock.unlock();
    std::optional<TransferCount> answer;
    try {
      answer = asked();
    } catch (const Error&) {  // they failed, which join() says
    }
    lock.lock();
    counting_ = false;
    if (answer && count_) counted_ = *answer;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::duration<double>(pause_), [&] { return ends_; });
  }
}

void CommunicatorWatch::on_verdict(OnVerdict callback) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !calling_ && !owes_call(); });
  callback_ = std::move(callback);
  called_ = false;
  if (callback_ && !aborter_.joinable()) aborter_ = started([this] { abort(); });
  changed_.notify_all();
  changed_.wait(lock, [&] { return !calling_ && !owes_call(); });
}

void CommunicatorWatch::decide(const Verdict& verdict) {
  const std::lock_guard lock(mutex_);
  verdict_ = verdict;
  changed_.notify_all();
}

void CommunicatorWatch::abort() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || owes_call(); });
    if (!owes_call()) return;
    calling_ = called_ = true;
    const OnVerdict call = callback_;
    lock.unlock();
    call(*verdict_);
    lock.lock();
    calling_ = false;
    changed_.notify_all();
  }
}

}  // namespace mulligan

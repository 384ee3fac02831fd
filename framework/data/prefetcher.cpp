#include "framework/data/prefetcher.h"

#include <algorithm>
#include <utility>

namespace mulligan {

Prefetcher::Prefetcher(std::unique_ptr<Loader> loader, std::size_t depth)
    : loader_(std::move(loader)), ring_(std::max<std::size_t>(depth, 1) + 1), position_(loader_->position()) {
  for (Slot& slot : ring_) slot.batch.reserve(loader_->options().row_tokens);
  start();
}

void Prefetcher::start() {
  head_ = 0;
  ready_ = 0;
  failure_ = nullptr;
  thread_ = std::jthread([this](const std::stop_token& stop) { read_ahead(stop); });
}

void Prefetcher::read_ahead(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [&] { return ready_ + 1 < ring_.size(); });
    if (stop.stop_requested()) return;
    Slot& slot = ring_[(head_ + ready_) % ring_.size()];
    lock.unlock();  // the slot is neither ready nor lent: only this thread touches it
    std::exception_ptr failure;
    try {
      loader_->next(slot.batch);
      slot.after = loader_->position();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
    } else {
      ++ready_;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

const Batch& Prefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ > 0 || failure_; });
  if (ready_ == 0) std::rethrow_exception(failure_);
  const Slot& slot = ring_[head_];
  head_ = (head_ + 1) % ring_.size();
  --ready_;
  position_ = slot.after;
  changed_.notify_all();
  return slot.batch;
}

void Prefetcher::set_group_spans(std::int64_t spans) {
  if (spans != loader_->options().group_spans) restart(position_, spans);
}

void Prefetcher::restore(const LoaderPosition& position) {
  restart(position, loader_->options().group_spans);
}

void Prefetcher::restart(const LoaderPosition& position, std::int64_t spans) {
  thread_ = std::jthread();  // ends the old one
  try {
    loader_->restore(position);
    loader_->set_group_spans(spans);
    position_ = position;
  } catch (...) {
    loader_->restore(position_);
    start();
    throw;
  }
  start();
}

}  // namespace mulligan

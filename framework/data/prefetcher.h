// Reads rows ahead of the trainer in one background thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "framework/data/loader.h"

namespace mulligan {

// Owns a loader and a ring of rows that are reused: after the ring is filled once, nothing is allocated. All
// public functions are called from one consumer thread.
class Prefetcher {
 public:
  // Starts reading at once, at most `depth` (>= 1) rows ahead.
  explicit Prefetcher(std::unique_ptr<Loader> loader, std::size_t depth = 4);

  // The next row, valid until the next call of a non-const function. Rethrows what the loader threw once the
  // rows read before it have been handed out, and again on every later call.
  const Batch& next();

  // The position after the last row handed out (not after the last row read ahead).
  LoaderPosition position() const { return position_; }
  // Drops what was read ahead and continues from `position`; also clears an earlier failure. Throws as
  // Loader::restore does, in which case the stream stays where it was.
  void restore(const LoaderPosition& position);

  // Loader::set_group_spans from the present position on; costs nothing where that is as it was.
  void set_group_spans(std::int64_t spans);

  const Loader& loader() const { return *loader_; }

 private:
  struct Slot {
    Batch batch;
    LoaderPosition after;
  };
  void start();
  void restart(const LoaderPosition& position, std::int64_t spans);
  void read_ahead(const std::stop_token& stop);

  std::unique_ptr<Loader> loader_;
  std::vector<Slot> ring_;  // depth + 1: the slot before head_ is in the consumer's hands
  LoaderPosition position_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t head_ = 0;   // slot handed out next
  std::size_t ready_ = 0;  // slots filled and not yet handed out
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it stops before the others go
};

}  // namespace mulligan

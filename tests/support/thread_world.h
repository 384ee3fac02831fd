// ThreadWorld: the ranks of a run as threads of one process, whose collectives are written plainly and in rank order: a
// reference for real communicators, and a world for tests that need no processes. Backends must have host memory.
#pragma once

#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/dist/communicator.h"

namespace mulligan {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size);
  ~ThreadWorld();

  // For the thread that is this rank.
  Communicator& rank(int rank);
  // Calls `body` in one thread for each rank; rethrows the first exception. A rank that throws leaves the others waiting no
  // longer: they fail, too.
  void run(const std::function<void(int rank, Communicator&)>& body);

 private:
  class Member;
  friend class Member;
  // What a rank shows the others between two barriers.
  struct Shown {
    std::string bytes;
    const void* address = nullptr;
  };
  void meet();

  int size_;
  std::vector<Shown> shown_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::barrier<> barrier_;
  bool failed_ = false;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace mulligan

// ThreadWorld: the ranks of a run as threads of one process, whose collectives are written plainly and in rank order: a
// reference for real communicators, and a world for tests that need no processes. Backends must have host memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/ranks/communicator.h"
#include "tests/support/thread_group.h"

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

  int size_;
  ThreadGroups groups_;
  std::vector<const void*> shown_;  // by rank, between two barriers: what its transfer sends
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace mulligan

// Ranks as threads of one process, for tests: their HostGroups talk through memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/ranks/host_group.h"

namespace mulligan {

// The ranks of one run. All calls of a group end: in a result, or with a sentence after a minute (get(): after
// its seconds), or as soon as fail() was called.
class ThreadGroups {
 public:
  explicit ThreadGroups(int size);
  ~ThreadGroups();
  HostGroup& group(int rank);
  // Pending and later calls of every rank throw Error (ExitCode::peer_failed) with this sentence.
  void fail(const std::string& sentence);

  struct State;

 private:
  std::shared_ptr<State> state_;
  std::vector<std::unique_ptr<HostGroup>> groups_;
};

// Runs `body` once per rank, each in a thread of its own. What a rank threw, by rank; empty: it returned.
std::vector<std::string> run_ranks(ThreadGroups& world, int size,
                                   const std::function<void(HostGroup&)>& body);
// The same in a new world. A rank that throws fails the others' calls.
std::vector<std::string> run_ranks(int size, const std::function<void(HostGroup&)>& body);

}  // namespace mulligan

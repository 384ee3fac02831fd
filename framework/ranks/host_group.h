// HostGroup: the processes ("ranks") of a run, and the small messages between them.
// Tensors go through the Communicator.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Collective calls (all but put() and get()) wait. One thread makes them, and every rank makes them in the same order. If the run
// has failed on another rank, they throw Error (ExitCode::peer_failed, with the verdict that names the culprit).
class HostGroup {
 public:
  virtual ~HostGroup() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this machine
  virtual int local_size() const = 0;

  // Every rank's bytes go to rank 0. Its `answer` turns them, by rank, into the bytes that all ranks get: one message from each rank
  // and one to it. `answer` runs on the calling thread of rank 0; an exception reaches only that caller. Ranks that come to calls of
  // different names do not do the same, which ends the run.
  using Answer = std::function<std::string(const std::vector<std::string>&)>;
  virtual std::string call(std::string_view name, std::string_view bytes, const Answer& answer) = 0;

  // Values by key; one rank puts each once. get() waits at most `seconds`. Any thread.
  virtual void put(const std::string& key, std::string_view value) = 0;
  virtual std::string get(const std::string& key, double seconds) = 0;

  std::string consult(std::string_view bytes, const Answer& answer) { return call("consult", bytes, answer); }
  // Every rank's bytes, by rank.
  std::vector<std::string> all_gather(std::string_view bytes);
  // Rank 0's bytes; those of other ranks are ignored.
  std::string broadcast(std::string_view bytes);
  void barrier();
  // Sums over ranks, added in rank order.
  void sum(std::span<double> values);
  // Rank 0's value, for decisions that must be the same on all ranks.
  double agree(double value);
  // Whether `value` is true on any rank.
  bool any(bool value);
  // The sum of all values of all ranks, added up one by one: rank 0's first, then rank 1's, and so on.
  double sum_in_order(std::span<const double> values);
};

// A world of one. With a larger `world_size`: rank 0 of ranks that do not exist, for plans; its calls are a std::logic_error.
std::unique_ptr<HostGroup> make_single_group(int world_size = 1);

}  // namespace mulligan

// How long rank 0 works for a decision of all ranks, once in each step: by simulated ranks (no sockets), and by
// real connections over the loopback. As all_gather() it was once, and as consult() now.
//
//   control_server_bench [RANKS...]
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "framework/ranks/control_channel.h"
#include "tests/support/rank_group.h"
#include "tests/support/simulated_ranks.h"

namespace mulligan {
namespace {

constexpr int calls = 200;
const std::string decision(32, 'x');

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void simulated(int size, CallKind kind, const char* name) {
  test_support::SimulatedRanks ranks(size);
  std::vector<double> seconds;
  std::size_t bytes = 0;
  for (int i = 0; i < calls; ++i) {
    bytes = ranks.call(kind, decision, decision);
    seconds.push_back(ranks.seconds_of_last_call());
  }
  fmt::print("{:4} simulated ranks, {:10}: {:8.3f} ms of rank 0's thread, {:10} bytes sent\n", size, name,
             1e3 * median(seconds), bytes);
}

// Real connections: CPU time of this process's threads is everyone's, so the time of a call is shown.
void over_sockets(int size, bool consults) {
  test_support::RankGroup group(size);
  group.options.heartbeat = 1;
  group.options.silent = 60;
  double seconds = 0;
  const auto outcomes = group.in_threads([&](ControlChannel& channel) {
    channel.barrier();
    const double begin = SocketLoop::now();
    for (int i = 0; i < calls; ++i) {
      if (consults) {
        channel.consult(decision, [](const std::vector<std::string>& all) { return all.front(); });
      } else {
        channel.all_gather(decision);
      }
    }
    if (channel.rank() == 0) seconds = (SocketLoop::now() - begin) / calls;
  });
  for (const auto& outcome : outcomes) {
    if (outcome.code != 0) fmt::print("{}\n", outcome.sentence);
  }
  fmt::print("{:4} ranks in threads over sockets, {:10}: {:8.3f} ms a call, all ranks on this machine\n",
             size, consults ? "consult" : "all_gather", 1e3 * seconds);
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {64, 256, 512};
  for (const int size : sizes) {
    mulligan::simulated(size, mulligan::CallKind::all_gather, "all_gather");
    mulligan::simulated(size, mulligan::CallKind::consult, "consult");
  }
  for (const int size : {16, 64}) {
    mulligan::over_sockets(size, false);
    mulligan::over_sockets(size, true);
  }
}

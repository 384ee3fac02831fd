// A rank of a run without training: meets the others as its environment says, makes calls with them and finishes. A signal stops
// all of them in good order. Exit codes are those of mulligan, sentences go to standard error.
//
//   mulligan_rank_probe CALLS [SILENT_SECONDS [MEET_SECONDS]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "framework/core/stop_request.h"
#include "framework/ranks/control_channel.h"
#include "framework/ranks/roll_call.h"

namespace mulligan {
namespace {

void say(const std::string& line) {
  fmt::print(stderr, "{}\n", line);
}

void make_calls(ControlChannel& channel, int calls) {
  call_roll(channel, {{"run", "probe"}});
  fmt::print("rank {} of {} is there\n", channel.rank(), channel.world_size());
  std::fflush(stdout);
  for (int i = 0; i < calls; ++i) {
    const auto stops = channel.all_gather(stop_signal() == 0 ? "" : "stop");
    const auto stop = std::ranges::find(stops, "stop");
    if (stop != stops.end()) {
      channel.finish();
      throw Error(ExitCode::interrupted,
                  fmt::format("all stop, as rank {} was asked to.", stop - stops.begin()));
    }
    ++channel.progress().steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  channel.finish();
}

int run(int argc, char** argv) {
  const StopSignals signals;
  try {
    ControlOptions options = control_options(process_environment());
    options.log = say;
    if (argc > 2) options.silent = std::atof(argv[2]);
    if (argc > 3) options.meet = std::atof(argv[3]);
    const auto channel = meet(find_launch(process_environment()), options);
    try {
      make_calls(*channel, argc > 1 ? std::atoi(argv[1]) : 1);
    } catch (const Error& error) {
      throw channel->report_failure(error);
    }
  } catch (const Error& error) {
    say(error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  return mulligan::run(argc, argv);
}

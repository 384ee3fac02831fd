#include "framework/run/run_ranks.h"

#include "framework/core/error.h"
#include "framework/dist/control_channel.h"

namespace mulligan {

RunRanks::RunRanks() : given_(make_single_group()) {}

RunRanks::RunRanks(std::unique_ptr<HostGroup> group) : given_(std::move(group)) {}

RunRanks::RunRanks(const std::string& launcher, const std::function<void(const std::string&)>& log)
    : environment_(find_launch(process_environment(), launcher)) {
  if (environment_.world_size == 1) {
    given_ = make_single_group();
    return;
  }
  ControlOptions options = control_options(process_environment());
  options.log = log;
  channel_ = meet(environment_, std::move(options));
}

RunRanks::~RunRanks() = default;

HostGroup& RunRanks::group() {
  if (channel_) return *channel_;
  return *given_;
}

std::unique_ptr<Communicator> RunRanks::communicator(const LoadedConfig&, PluginHost&, Backend&) {
  if (alone()) return make_self_communicator();
  throw config_error("several ranks need a communicator plugin.");
}

void RunRanks::note_step() {
  if (channel_) ++channel_->progress().steps;
}

void RunRanks::run(const std::function<void()>& work) {
  if (!channel_) return work();
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted && agreed_stop_) {
      channel_->finish();
      throw;
    }
    throw channel_->report_failure(error);
  } catch (const std::exception& error) {
    throw channel_->report_failure(run_error("{}", error.what()));
  }
  channel_->finish();
}

}  // namespace mulligan

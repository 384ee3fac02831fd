#include "launch/launcher/node_group.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace mulligan {
namespace {

int make_wakeup() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw run_error("the system refuses an eventfd: {}.", std::strerror(errno));
  return descriptor;
}

void wake(int descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

LaunchEnvironment environment_of(const LaunchPlan& plan) {
  LaunchEnvironment environment;
  environment.launcher = "launch";
  environment.rank = plan.node;
  environment.world_size = plan.nodes;
  environment.run_id = "launchers of " + plan.run_id;
  environment.host = plan.address;
  environment.ports = {static_cast<std::uint16_t>(plan.port)};
  environment.interface_name = process_environment()("MULLIGAN_INTERFACE").value_or("");
  return environment;
}

// The settings that all launchers must share, such as "--nproc-per-node 8 --max-restarts 3".
std::string common_settings(const LaunchPlan& plan) {
  return fmt::format("--nproc-per-node {} --max-restarts {}", plan.ranks.size(), plan.restarts);
}

Error among_launchers(const Error& error) {
  return Error(error.code(), fmt::format("among the launchers (a rank here is a node): {}", error.what()));
}

}  // namespace

NodeGroup& NodeGroup::make(const LaunchPlan& plan) {
  NodeGroup& group = *new NodeGroup(plan);
  start_thread([&group] {
    try {
      group.meet_others();
    } catch (const Error& error) {
      const std::lock_guard lock(group.mutex_);
      group.error_ = among_launchers(error);
    }
    wake(group.wakeup_);
  }).detach();
  return group;
}

NodeGroup::NodeGroup(const LaunchPlan& plan) : plan_(plan), wakeup_(make_wakeup()) {}

void NodeGroup::meet_others() {
  ControlOptions options = control_options(process_environment());
  options.error_file.clear();
  options.watchdog = 0;
  // A launcher waits for as long as its ranks work.
  options.wedged = options.first_step = options.slow = std::numeric_limits<double>::infinity();
  options.log = [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    wake(wakeup_);
  };
  options.news = [this] { wake(wakeup_); };
  auto channel = meet(environment_of(plan_), std::move(options));
  const std::vector<std::string> settings = channel->all_gather(common_settings(plan_));
  for (std::size_t node = 1; node < settings.size(); ++node) {
    if (settings[node] == settings[0]) continue;
    throw config_error("node 0 was launched with {}, node {} with {}; give all nodes the same.", settings[0],
                       node, settings[node]);
  }
  const std::lock_guard lock(mutex_);
  channel_ = std::move(channel);
}

bool NodeGroup::have_met() {
  const std::lock_guard lock(mutex_);
  if (error_) throw *error_;
  return channel_ != nullptr;
}

void NodeGroup::tell(int news) {
  try {
    channel_->put(news_key(), std::to_string(news));
  } catch (const Error&) {
    return;  // a launcher is lost, which take_news() tells
  }
}

NodeGroup::News NodeGroup::take_news() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t count = ::read(wakeup_, &ignored, sizeof ignored);
  const std::lock_guard lock(mutex_);
  News news{std::exchange(lines_, {}), {}, channel_ && channel_->verdict()};
  if (const auto told = channel_ ? channel_->find(news_key()) : std::nullopt) news.told = std::stoi(*told);
  return news;
}

void NodeGroup::end_attempt(const AttemptEnd& end) {
  try {
    channel_->put(end_key(plan_.node), to_wire(end));
  } catch (const Error& error) {
    throw among_launchers(error);
  }
}

std::optional<AttemptEnd> NodeGroup::take_end() {
  const auto verdict = channel_->verdict();
  AttemptEnd all;
  for (int node = 0; node < plan_.nodes; ++node) {
    const auto text = channel_->find(end_key(node));
    if (!text && verdict) throw among_launchers(verdict->error_of(plan_.node));
    if (!text) return std::nullopt;
    auto one = from_wire<AttemptEnd>(*text);
    if (all.signal == 0) all.signal = one.signal;
    for (RankEnd& rank : one.ranks) all.ranks.push_back(std::move(rank));
  }
  std::ranges::stable_sort(all.ranks, {}, &RankEnd::seconds);
  return all;
}

void NodeGroup::finish() {
  try {
    channel_->finish();
  } catch (const Error&) {
    return;  // a launcher that was lost after the end changes nothing
  }
}

}  // namespace mulligan

#include "launch/launcher/node_group.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace mulligan {
namespace {

constexpr const char* kOver = "over";  // an attempt that has ended on all nodes

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

}  // namespace

NodeGroup& NodeGroup::make(const LaunchPlan& plan) {
  NodeGroup& group = *new NodeGroup(plan);
  group.work([&group] { group.meet_others(); });
  return group;
}

NodeGroup::NodeGroup(const LaunchPlan& plan) : plan_(plan), wakeup_(make_wakeup()) {}

template <typename Call>
void NodeGroup::work(Call call) {
  if (worker_.joinable()) worker_.join();  // it has stored its result, so it ends soon
  worker_ = std::thread([this, call] {
    try {
      call();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      error_ =
          Error(error.code(), fmt::format("among the launchers (a rank here is a node): {}", error.what()));
    }
    wake(wakeup_);
  });
}

void NodeGroup::note_line(const std::string& line) {
  const std::lock_guard lock(mutex_);
  news_.lines.push_back(line);
  wake(wakeup_);
}

void NodeGroup::meet_others() {
  ControlOptions options = control_options(process_environment());
  options.error_file.clear();
  options.watchdog = 0;
  // A launcher waits for as long as its ranks work.
  options.wedged = options.first_step = options.slow = std::numeric_limits<double>::infinity();
  options.log = [this](const std::string& line) { note_line(line); };
  channel_ = meet(environment_of(plan_), std::move(options));
  channel_->watch(this, {}, [this](const Verdict&) {
    const std::lock_guard lock(mutex_);
    news_.broken = true;
    wake(wakeup_);
  });
  const std::vector<std::string> settings = channel_->all_gather(common_settings(plan_));
  for (std::size_t node = 1; node < settings.size(); ++node) {
    if (settings[node] == settings[0]) continue;
    throw config_error("node 0 was launched with {}, node {} with {}; give all nodes the same.", settings[0],
                       node, settings[node]);
  }
  const std::lock_guard lock(mutex_);
  met_ = true;
}

bool NodeGroup::have_met() {
  const std::lock_guard lock(mutex_);
  if (error_) throw *error_;
  return met_;
}

void NodeGroup::begin_attempt(int attempt) {
  if (listener_.joinable()) listener_.join();  // "over" has arrived or arrives soon
  {
    const std::lock_guard lock(mutex_);
    news_.told.reset();
    end_.reset();
  }
  news_key_ = fmt::format("news of attempt {}", attempt);
  listener_ = std::thread([this, key = news_key_] { listen(key); });
}

void NodeGroup::listen(const std::string& key) {
  try {
    const std::string value = channel_->get(key, -1);
    if (value == kOver) return;
    const std::lock_guard lock(mutex_);
    news_.told = std::atoi(value.c_str());
  } catch (const Error&) {
    return;  // a launcher is lost, which the verdict has reported
  }
  wake(wakeup_);
}

void NodeGroup::tell(int news) {
  try {
    channel_->put(news_key_, std::to_string(news));
  } catch (const Error&) {
    return;  // as above
  }
}

NodeGroup::News NodeGroup::take_news() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t count = ::read(wakeup_, &ignored, sizeof ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, News{{}, std::nullopt, news_.broken});
}

void NodeGroup::end_attempt(const AttemptEnd& end) {
  work([this, own = to_wire(end)] { gather(own); });
}

void NodeGroup::gather(const std::string& own) {
  AttemptEnd all;
  for (const std::string& text : channel_->all_gather(own)) {
    auto one = from_wire<AttemptEnd>(text);
    if (all.signal == 0) all.signal = one.signal;
    for (RankEnd& rank : one.ranks) all.ranks.push_back(std::move(rank));
  }
  channel_->put(news_key_, kOver);
  std::ranges::stable_sort(all.ranks, {}, &RankEnd::seconds);
  const std::lock_guard lock(mutex_);
  end_ = std::move(all);
}

std::optional<AttemptEnd> NodeGroup::take_end() {
  const std::lock_guard lock(mutex_);
  if (error_) throw *error_;
  return std::exchange(end_, std::nullopt);
}

void NodeGroup::finish() {
  if (worker_.joinable()) worker_.join();
  try {
    channel_->finish();
  } catch (const Error&) {
    return;  // a launcher that was lost after the end changes nothing
  }
}

}  // namespace mulligan

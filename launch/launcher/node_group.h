// NodeGroup: the launchers of the machines of one run among themselves.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/ranks/control_channel.h"
#include "launch/launcher/launch_plan.h"
#include "launch/launcher/outcome.h"

namespace mulligan {

// They meet as ranks do (framework/ranks/control_channel.h; a "rank" there is the launcher of a node), at plan.address and
// plan.port. Each learns at once of a failure or a signal on another node. All judge the same ends of the same attempt, so they
// decide alike without further messages. If a launcher is lost, the run ends on all nodes.
//
// No call but finish() waits: descriptor() is readable when there is something to take. A thread may be waiting for other machines at
// the end of the process; so an object is never destroyed.
class NodeGroup {
 public:
  // Starts to meet the others.
  static NodeGroup& make(const LaunchPlan& plan);

  int descriptor() const { return wakeup_; }

  // Whether all launchers are there and start alike. Throws what meeting them threw:
  // config_error, peer_failed.
  bool have_met();
  // What follows is about this attempt.
  void begin_attempt(int attempt) { attempt_ = attempt; }
  // Tells all nodes that the attempt is to stop: 0 for a failure, otherwise a signal.
  void tell(int news);
  // Lines for people since the last call, what some node has told first, and whether a launcher is lost.
  struct News {
    std::vector<std::string> lines;
    std::optional<int> told;
    bool broken = false;
  };
  News take_news();
  // The ranks of this node have ended.
  void end_attempt(const AttemptEnd& end);
  // The end on all nodes, once all have called end_attempt(). Throws peer_failed when a launcher is lost.
  std::optional<AttemptEnd> take_end();
  // The last call, after an end that all have judged: waits until they have come here, too.
  void finish();

 private:
  explicit NodeGroup(const LaunchPlan& plan);
  void meet_others();
  std::string news_key() const { return fmt::format("news of attempt {}", attempt_); }
  std::string end_key(int node) const { return fmt::format("end of attempt {} on node {}", attempt_, node); }

  const LaunchPlan plan_;
  const int wakeup_;
  int attempt_ = 0;
  std::mutex mutex_;                         // guards what follows
  std::unique_ptr<ControlChannel> channel_;  // null until all have met; then it stays
  std::optional<Error> error_;
  std::vector<std::string> lines_;
};

}  // namespace mulligan

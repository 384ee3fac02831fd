// NodeGroup: the launchers of the machines of one run among themselves.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "framework/ranks/control_channel.h"
#include "launch/launcher/launch_plan.h"
#include "launch/launcher/outcome.h"

namespace mulligan {

// They meet as ranks do (framework/ranks/control_channel.h; a "rank" there is the launcher of a node), at plan.address and
// plan.port. Each learns at once of a failure or a signal on another node. All judge the same ends of the same attempt, so they
// decide alike without further messages. If a launcher is lost, the run ends on all nodes.
//
// No call but finish() waits: threads do the work, and descriptor() is readable when there is something to
// take. They may be waiting for other machines at the end of the process; so an object is never destroyed.
class NodeGroup {
 public:
  // Starts to meet the others.
  static NodeGroup& make(const LaunchPlan& plan);

  int descriptor() const { return wakeup_; }

  // Whether all launchers are there and start alike. Throws what meeting them threw:
  // config_error, peer_failed.
  bool have_met();
  // From now on news of this attempt are listened for.
  void begin_attempt(int attempt);
  // Tells all nodes that the attempt is to stop: 0 for a failure, otherwise a signal.
  void tell(int news);
  // What came since the last call: lines for people, what some node has told, and whether a launcher is lost.
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
  void gather(const std::string& own);
  void listen(const std::string& key);
  void note_line(const std::string& line);
  template <typename Call>
  void work(Call call);  // on a thread, after those before; its Error is kept

  const LaunchPlan plan_;
  const int wakeup_;
  std::string news_key_;
  std::unique_ptr<ControlChannel> channel_;
  std::thread worker_, listener_;
  std::mutex mutex_;  // guards what follows
  bool met_ = false;
  std::optional<Error> error_;
  News news_;
  std::optional<AttemptEnd> end_;
};

}  // namespace mulligan

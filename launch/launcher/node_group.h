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
  void clear_descriptor() const;

  // Whether all launchers are there and start alike. Throws what meeting them threw:
  // config_error, peer_failed.
  bool have_met();
  // From now on news of this attempt are listened for.
  void begin_attempt(int attempt);
  // Tells all nodes that the attempt is to stop: 0 for a failure, otherwise a signal.
  void tell(int news);
  // What some node has told, once.
  std::optional<int> take_news();
  // The ranks of this node have ended.
  void end_attempt(const AttemptEnd& end);
  // The end on all nodes, once all have called end_attempt(). Throws peer_failed when a launcher is lost.
  std::optional<AttemptEnd> take_end();
  // Whether a launcher was lost.
  bool is_broken();
  // Lines for people that came up meanwhile.
  std::vector<std::string> take_lines();
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
  bool met_ = false, broken_ = false;
  std::optional<Error> error_;
  std::optional<int> news_;
  std::optional<AttemptEnd> end_;
  std::vector<std::string> lines_;
};

// As text, for the way between launchers. parse_attempt_end throws data_error for what is none.
std::string to_text(const AttemptEnd& end);
AttemptEnd parse_attempt_end(const std::string& text);

}  // namespace mulligan

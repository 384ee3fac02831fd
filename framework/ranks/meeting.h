// How a rank finds rank 0, which accepts every process that proves that it belongs to the run: it tries rank 0's ports until one
// answers. Runs on the loop's thread. The object outlives the loop's callbacks (call SocketLoop::stop before it ends).
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "framework/ranks/control_options.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/socket_loop.h"

namespace mulligan {

class MeetingClient {
 public:
  struct Callbacks {
    std::function<void(std::shared_ptr<Link>, const RankName& host)> welcomed;  // once
    std::function<void(const std::string& sentence)> refused;  // by a rank 0 of this run; may come often
  };
  MeetingClient(SocketLoop& loop, RunIdentity run, RankName own, double handshake_seconds,
                Callbacks callbacks);

  void try_ports(const std::string& host, const std::vector<std::uint16_t>& ports);
  void stop();
  // Why the last attempts did not succeed, for people.
  const std::string& last_reason() const { return last_reason_; }

 private:
  struct Attempt;
  void connect(const std::shared_ptr<Attempt>& attempt);
  void take(const std::shared_ptr<Attempt>& attempt, const ControlMessage& message);
  void try_again(const std::shared_ptr<Attempt>& attempt, const std::string& reason);

  SocketLoop& loop_;
  RunIdentity run_;
  RankName own_;
  double handshake_seconds_;
  Callbacks callbacks_;
  std::list<std::shared_ptr<Attempt>> attempts_;
  std::string last_reason_ = "nothing answered";
  bool stopped_ = false;
};

}  // namespace mulligan

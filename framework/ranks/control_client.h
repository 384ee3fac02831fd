// The end of the control channel of every rank but 0.
#pragma once

#include "framework/ranks/control_end.h"
#include "framework/ranks/meeting.h"

namespace mulligan {

class ControlClient final : public ControlEnd {
 public:
  ControlClient(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
               Callbacks callbacks);
  void start() override;
  void arrive(const Arrival& arrival) override { send(write_message(arrival)); }
  void answer(const CallResult&) override {}  // is rank 0's
  void put(const Put& put) override { send(write_message(put)); }
  void get(const Get& get) override { send(write_message(get)); }
  void report(const FailureReport& report) override;
  void say_farewell() override { send(write_message(Farewell{})); }
  std::string own_address() const override {
    return link_ && !link_->peer_on_loopback() ? link_->own_address() : "";
  }
  void leave() override;

 private:
  void send(std::string frames);
  void welcomed(std::shared_ptr<Link> link, const RankName& server);
  void take(const ControlMessage& message);
  void tick();
  void tell_missing();
  void lose_server(const std::string& why);
  void decide(const Verdict& verdict);
  std::string looking_for() const;

  SocketLoop& loop_;
  LaunchEnvironment environment_;
  ControlOptions options_;
  Callbacks callbacks_;
  RankName own_, server_;
  MeetingClient meeting_;
  std::shared_ptr<Link> link_;
  std::string waiting_;  // frames from before the welcome
  double begun_ = 0, last_tick_ = 0, heard_ = 0;
  bool refused_ = false, decided_ = false, done_ = false;
};

}  // namespace mulligan

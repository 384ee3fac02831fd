// Rank 0's end of the control channel: it brings the ranks together, passes their messages on, and decides when the run has
// failed.
#pragma once

#include <list>
#include <optional>

#include "framework/ranks/control_end.h"
#include "framework/ranks/fault_watch.h"

namespace mulligan {

class ControlServer final : public ControlEnd {
 public:
  // Throws like SocketLoop::listen.
  ControlServer(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                Callbacks callbacks);
  void start() override;
  void tell(const ControlMessage& message) override { take(0, message); }
  std::string own_address() const override;
  void leave() override;

  // A connection that has not yet proved that it is a rank's.
  void greet(std::shared_ptr<Link> link);

 private:
  struct Newcomer {
    std::shared_ptr<Link> link;
    Nonce nonce{};
  };
  struct Seat {
    std::shared_ptr<Link> link;  // rank 0 has none
    RankName name;
    bool taken = false;
    std::optional<std::string> arrived;  // its bytes of the running call
    bool farewell = false;
  };

  std::list<Newcomer>::iterator find(const Link* link);
  void drop(Link* link, const std::string& reason);
  void judge(Link* link, const ControlMessage& answer);
  std::string take_seat(const Hello& hello, std::shared_ptr<Link> link, const Nonce& greeted_with);
  void refused(const Judgement& judgement);
  std::string missing_ranks() const;
  bool has_met() const override;
  std::string missing() const override;
  Verdict not_met() const override;
  void welcomed(std::shared_ptr<Link> link, const RankName&) override { link->close(); }
  void turned_away(const std::string& sentence) override;

  void take(int rank, const ControlMessage& message);
  void arrived(int rank, const Arrival& arrival);
  void send_to_all(std::string frames);
  void failed(int rank, const FailureReport& report);
  void farewell(int rank);
  void tick();
  void look_at_suspected(double now);
  bool was_stopped(double now);
  void lose(int rank, const std::string& why);
  void decide(const Verdict& verdict) override;
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  std::list<Newcomer> newcomers_;  // that have not proved anything yet
  bool other_run_logged_ = false;
  std::vector<Seat> seats_;
  std::string refusal_;  // the first, maybe of a missing rank
  FaultWatch watch_;
  // The running call, the number of those before it, and how many ranks have reached it.
  std::string call_;
  std::uint64_t calls_ = 0;
  std::size_t arrived_ = 0;
  std::optional<Verdict> suspected_;  // of a failed transfer, unless another rank is gone
  double suspected_since_ = 0;
  std::optional<Verdict> held_;  // until those that gave up rank 0 have told it
  double woke_ = -1e9;           // when this process resumed after a stop
};

}  // namespace mulligan

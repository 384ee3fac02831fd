// Rank 0's end of the control channel: it brings the ranks together, passes their messages on, and decides when the run has
// failed.
#pragma once

#include <list>
#include <map>
#include <optional>

#include "framework/ranks/control_end.h"
#include "framework/ranks/fault_watch.h"
#include "framework/ranks/meeting.h"

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
    std::uint64_t calls = 0;
    std::optional<std::string> arrived;  // its bytes of the running call
    bool farewell = false;
    bool lost = false;     // its connection is gone, or nothing comes from it
    bool gave_up = false;  // it has: rank 0
  };
  struct Wanted {
    int rank;
    std::uint64_t request;
  };
  struct Suspicion {
    int rank;
    std::string sentence;
    double since;
  };

  std::list<Newcomer>::iterator find(const Link* link);
  void drop(Link* link, const std::string& reason);
  void judge(Link* link, const ControlMessage& answer);
  std::string take_seat(const Hello& hello, std::shared_ptr<Link> link, const Nonce& greeted_with);
  void refused(const Judgement& judgement);
  void look_for_other_servers(std::size_t port_index);
  void missing_log_interval();
  std::string missing_ranks() const;
  bool all_there() const;

  void take(int rank, const ControlMessage& message);
  void arrived(int rank, const Arrival& arrival);
  void complete();
  void send_to_all(std::string frames);
  void put(const Put& put);
  void wanted(int rank, const Get& get);
  void answer(int rank, const FoundValue& value);
  void failed(int rank, const FailureReport& report);
  void farewell(int rank);
  void tick();
  void look_at_suspicion(double now);
  bool was_stopped(double now);
  void given_up_by(int rank, const std::string& sentence);
  void count_votes_soon();
  void count_votes();
  void lose(int rank, const std::string& why);
  void decide(const Verdict& verdict);
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  std::list<Newcomer> newcomers_;  // that have not proved anything yet
  bool other_run_logged_ = false;
  std::unique_ptr<MeetingClient> other_servers_;
  std::vector<Seat> seats_;
  std::vector<std::string> refusals_;  // possible reasons why missing ranks were refused
  FaultWatch watch_;
  // The running call, and how many ranks have reached it.
  CallKind call_ = CallKind::barrier;
  std::uint64_t sequence_ = 0;
  std::size_t arrived_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Wanted>> wanted_;
  std::optional<Suspicion> suspicion_;
  std::optional<Verdict> held_;  // until the ranks that gave up rank 0 are counted
  std::string given_up_;         // the sentence of the first of these
  bool counts_votes_ = false;
  double woke_ = -1e9;  // when this process resumed after a stop
};

}  // namespace mulligan

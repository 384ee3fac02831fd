// The end of the control channel of every rank but 0.
#include <algorithm>
#include <utility>

#include "framework/core/printable.h"
#include "framework/ranks/control_end.h"

namespace mulligan {
namespace {

class ControlClient final : public ControlEnd {
 public:
  using ControlEnd::ControlEnd;

  void start() override {
    try_ports(environment_.ports.size());
    await_meeting();
  }

  void tell(const ControlMessage& message) override {
    if (link_) return link_->send(to_frame(message.kind, message.payload));
    if (message.kind != FailureReport::kind) {
      waiting_ += to_frame(message.kind, message.payload);
      return;
    }
    // There is no rank to tell. The run is over for this rank all the same.
    const auto report = read_message<FailureReport>(message);
    const bool stopped = report.cause == FailureCause::stopped;
    decide({own_.rank, stopped ? ExitCode::interrupted : ExitCode::peer_failed, report.sentence});
  }

  std::string own_address() const override {
    return link_ && !link_->peer_on_loopback ? link_->own_address : "";
  }

  void leave() override {
    stop_trying();
    if (const auto link = std::exchange(link_, nullptr)) link->close();
  }

 private:
  bool has_met() const override { return link_ != nullptr; }
  std::string looking_for() const {
    return fmt::format("{} ports {} to {}", printable(environment_.host), environment_.ports.front(),
                       environment_.ports.back());
  }
  std::string missing() const override {
    return fmt::format("rank {} looks for rank 0 at {} (last: {})", own_.rank, looking_for(), last_reason_);
  }
  Verdict not_met() const override {
    return {0, ExitCode::peer_failed,
            fmt::format("{} did not find rank 0 at {} within {:g} s (last: {}); look at rank 0's log, and at "
                        "firewalls between the machines.",
                        own_.text(), looking_for(), options_.meet, last_reason_)};
  }

  void turned_away(const std::string& sentence) override {
    if (std::exchange(turned_away_, true) || link_) return;
    loop_.after(options_.refusal_grace, [this, sentence] {
      if (!link_) decide({own_.rank, ExitCode::bad_configuration, sentence});
    });
  }

  void welcomed(std::shared_ptr<Link> link, const RankName& server) override {
    if (over_) return link->close();
    link_ = std::move(link);
    server_ = server;
    link_->on_message = [this](const ControlMessage& message) { take(message); };
    link_->on_closed = [this](const std::string& why) { lose_server(why); };
    if (!waiting_.empty()) link_->send(std::exchange(waiting_, {}));
    heard_ = last_tick_ = steady_seconds();
    tick();
  }

  void tick() {
    if (over_ || !link_) return;
    const double now = steady_seconds();
    // Late by far: this process itself was stopped, and what rank 0 said meanwhile has yet to be read.
    if (now - last_tick_ > options_.heartbeat + options_.silent / 2) heard_ = now;
    last_tick_ = now;
    heard_ = std::max(heard_, link_->last_heard);
    if (now - heard_ >= options_.silent - options_.heartbeat)
      return lose_server(fmt::format("it said nothing for {:.0f} s", now - heard_));
    link_->send(write_message(callbacks_.pulse()));
    loop_.after(options_.heartbeat, [this] { tick(); });
  }

  void take(const ControlMessage& message) {
    if (over_) return;
    switch (message.kind) {
      case Heartbeat::kind:
        read_message<Heartbeat>(message);
        return;
      case Verdict::kind:
        return decide(read_message<Verdict>(message));
      case Farewell::kind:
        over_ = true;
        [[fallthrough]];
      case CallResult::kind:
      case Put::kind:
        return callbacks_.take(message);
      default:
        throw run_error("it sent a message of kind {}, which there is not", message.kind);
    }
  }

  void lose_server(const std::string& why) {
    if (over_) return;
    const Verdict verdict{
        0, ExitCode::peer_failed,
        fmt::format("{} was lost: {}; look at its log and its machine.", server_.text(), why)};
    // Should it only have been stopped, it learns so.
    link_->send(write_message(FailureReport{FailureCause::server_lost, verdict.sentence}));
    decide(verdict);
  }

  void decide(const Verdict& verdict) override {
    if (std::exchange(over_, true)) return;
    stop_trying();
    callbacks_.take(message_of(verdict));
  }

  RankName server_;
  std::shared_ptr<Link> link_;
  std::string waiting_;  // frames from before the welcome
  double heard_ = 0;
  bool turned_away_ = false;
};

}  // namespace

std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks) {
  return std::make_unique<ControlClient>(loop, environment, std::move(options), std::move(callbacks));
}

}  // namespace mulligan

// The end of the control channel of every rank but 0.
#include <utility>

#include "framework/core/printable.h"
#include "framework/ranks/control_end.h"
#include "framework/ranks/meeting.h"

namespace mulligan {
namespace {

class ControlClient final : public ControlEnd {
 public:
  ControlClient(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                Callbacks callbacks)
      : ControlEnd(loop, environment, std::move(options), std::move(callbacks)),
        meeting_(loop, run_, own_, options_.handshake,
                 {[this](std::shared_ptr<Link> link, const RankName& server) {
                    welcomed(std::move(link), server);
                  },
                  [this](const std::string& sentence) {
                    if (std::exchange(refused_, true) || link_) return;
                    loop_.after(options_.refusal_grace, [this, sentence] {
                      if (!link_) decide({own_.rank, ExitCode::bad_configuration, sentence});
                    });
                  }}) {}

  void start() override {
    meeting_.try_ports(environment_.host, environment_.ports);
    loop_.after(options_.meet, [this] {
      if (link_) return;
      decide(
          {0, ExitCode::peer_failed,
           fmt::format("{} did not find rank 0 at {} within {:g} s (last: {}); look at rank 0's log, and at "
                       "firewalls between the machines.",
                       own_.text(), looking_for(), options_.meet, meeting_.last_reason())});
    });
    loop_.after(options_.missing_log_interval, [this] { missing_log_interval(); });
  }

  void tell(const ControlMessage& message) override {
    if (message.kind == FailureReport::kind && decided_) return;
    if (message.kind == FailureReport::kind && !link_) {
      // There is no rank to tell. The run is over for this rank all the same.
      const auto report = read_message<FailureReport>(message);
      return decide({own_.rank,
                     report.cause == FailureCause::stopped ? ExitCode::interrupted : ExitCode::peer_failed,
                     report.sentence});
    }
    send(to_frame(message.kind, message.payload));
  }

  std::string own_address() const override {
    return link_ && !link_->peer_on_loopback ? link_->own_address : "";
  }

  void leave() override {
    meeting_.stop();
    if (const auto link = std::exchange(link_, nullptr)) link->close();
  }

 private:
  std::string looking_for() const {
    return fmt::format("{} ports {} to {}", printable(environment_.host), environment_.ports.front(),
                       environment_.ports.back());
  }

  void missing_log_interval() {
    if (link_ || decided_) return;
    options_.log(fmt::format("rank {} looks for rank 0 at {} since {:.0f} s (last: {})", own_.rank,
                             looking_for(), steady_seconds() - begun_, meeting_.last_reason()));
    loop_.after(options_.missing_log_interval, [this] { missing_log_interval(); });
  }

  void welcomed(std::shared_ptr<Link> link, const RankName& server) {
    if (decided_) return link->close();
    link_ = std::move(link);
    server_ = server;
    link_->on_message = [this](const ControlMessage& message) { take(message); };
    link_->on_closed = [this](const std::string& why) { lose_server(why); };
    if (!waiting_.empty()) link_->send(std::exchange(waiting_, {}));
    heard_ = last_tick_ = steady_seconds();
    tick();
  }

  void send(std::string frames) {
    if (link_) return link_->send(std::move(frames));
    waiting_ += frames;
  }

  void tick() {
    if (decided_ || done_) return;
    const double now = steady_seconds();
    // Late by far: this process itself was stopped, and what rank 0 said meanwhile has yet to be read.
    if (now - last_tick_ > options_.heartbeat + options_.silent / 2) heard_ = now;
    last_tick_ = now;
    heard_ = std::max(heard_, link_->last_heard);
    if (now - heard_ >= options_.silent - options_.heartbeat)
      return lose_server(fmt::format("it said nothing for {:.0f} s", now - heard_));
    send(write_message(callbacks_.pulse()));
    loop_.after(options_.heartbeat, [this] { tick(); });
  }

  void take(const ControlMessage& message) {
    if (decided_ || done_) return;
    switch (message.kind) {
      case Heartbeat::kind:
        read_message<Heartbeat>(message);
        return;
      case Verdict::kind:
        return decide(read_message<Verdict>(message));
      case Farewell::kind:
        done_ = true;
        [[fallthrough]];
      case CallResult::kind:
      case FoundValue::kind:
        return callbacks_.take(message);
      default:
        throw run_error("it sent a message of kind {}, which there is not", message.kind);
    }
  }

  void lose_server(const std::string& why) {
    if (done_) return;
    Verdict verdict{0, ExitCode::peer_failed,
                    fmt::format("{} was lost: {}; look at its log and its machine.", server_.text(), why)};
    // Should it only have been stopped, it learns so.
    link_->send(write_message(FailureReport{FailureCause::server_lost, verdict.sentence}));
    decide(verdict);
  }

  void decide(const Verdict& verdict) {
    if (std::exchange(decided_, true)) return;
    meeting_.stop();
    callbacks_.take(message_of(verdict));
  }

  RankName server_;
  MeetingClient meeting_;
  std::shared_ptr<Link> link_;
  std::string waiting_;  // frames from before the welcome
  double heard_ = 0;
  bool refused_ = false;
};

}  // namespace

std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks) {
  return std::make_unique<ControlClient>(loop, environment, std::move(options), std::move(callbacks));
}

}  // namespace mulligan

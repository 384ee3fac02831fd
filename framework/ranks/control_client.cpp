// The end of the control channel of every rank but 0.
#include <utility>

#include "framework/core/printable.h"
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
  void missing_log_interval();
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

ControlClient::ControlClient(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
                             Callbacks callbacks)
    : loop_(loop),
      environment_(environment),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      own_(own_name(environment.rank)),
      meeting_(
          loop, identity_of(environment, options_.secret), own_, options_.handshake,
          {[this](std::shared_ptr<Link> link, const RankName& server) { welcomed(std::move(link), server); },
           [this](const std::string& sentence) {
             if (std::exchange(refused_, true) || link_) return;
             loop_.after(options_.refusal_grace, [this, sentence] {
               if (!link_) decide({own_.rank, ExitCode::bad_configuration, sentence});
             });
           }}) {}

void ControlClient::start() {
  begun_ = last_tick_ = SocketLoop::now();
  meeting_.try_ports(environment_.host, environment_.ports);
  loop_.after(options_.meet, [this] {
    if (link_) return;
    decide({0, ExitCode::peer_failed,
            fmt::format("{} did not find rank 0 at {} within {:g} s (last: {}); look at rank 0's log, and at "
                        "firewalls between the machines.",
                        own_.text(), looking_for(), options_.meet, meeting_.last_reason())});
  });
  loop_.after(options_.missing_log_interval, [this] { missing_log_interval(); });
}

std::string ControlClient::looking_for() const {
  return fmt::format("{} ports {} to {}", printable(environment_.host), environment_.ports.front(),
                     environment_.ports.back());
}

void ControlClient::missing_log_interval() {
  if (link_ || decided_) return;
  callbacks_.log(fmt::format("rank {} looks for rank 0 at {} since {:.0f} s (last: {})", own_.rank,
                             looking_for(), SocketLoop::now() - begun_, meeting_.last_reason()));
  loop_.after(options_.missing_log_interval, [this] { missing_log_interval(); });
}

void ControlClient::welcomed(std::shared_ptr<Link> link, const RankName& server) {
  if (decided_) return link->close();
  link_ = std::move(link);
  server_ = server;
  link_->on_message = [this](const ControlMessage& message) { take(message); };
  link_->on_closed = [this](const std::string& why) { lose_server(why); };
  if (!waiting_.empty()) link_->send(std::exchange(waiting_, {}));
  heard_ = last_tick_ = SocketLoop::now();
  tick();
}

void ControlClient::send(std::string frames) {
  if (link_) return link_->send(std::move(frames));
  waiting_ += frames;
}

void ControlClient::tick() {
  if (decided_ || done_) return;
  const double now = SocketLoop::now();
  // Late by far: this process itself was stopped, and what rank 0 said meanwhile has yet to be read.
  if (now - last_tick_ > options_.heartbeat + options_.silent / 2) heard_ = now;
  last_tick_ = now;
  heard_ = std::max(heard_, link_->last_heard());
  if (now - heard_ >= options_.silent - options_.heartbeat)
    return lose_server(fmt::format("it said nothing for {:.0f} s", now - heard_));
  send(write_message(callbacks_.pulse()));
  loop_.after(options_.heartbeat, [this] { tick(); });
}

void ControlClient::take(const ControlMessage& message) {
  if (decided_ || done_) return;
  switch (message.kind) {
    case Heartbeat::kind:
      read_message<Heartbeat>(message);
      return;
    case CallResult::kind: {
      auto result = read_message<CallResult>(message);
      return callbacks_.call_done(result.sequence, std::move(result.parts));
    }
    case FoundValue::kind: {
      const auto value = read_message<FoundValue>(message);
      return callbacks_.value_there(value.request, value.value);
    }
    case VerdictMessage::kind: {
      const auto verdict = read_message<VerdictMessage>(message);
      return decide({verdict.culprit, static_cast<ExitCode>(verdict.exit_code), printable(verdict.sentence)});
    }
    case Farewell::kind:
      done_ = true;
      return callbacks_.all_done();
    default:
      throw run_error("it sent a message of kind {}, which there is not", message.kind);
  }
}

void ControlClient::lose_server(const std::string& why) {
  if (done_) return;
  Verdict verdict{0, ExitCode::peer_failed,
                  fmt::format("{} was lost: {}; look at its log and its machine.", server_.text(), why)};
  // Should it only have been stopped, it learns so.
  link_->send(
      write_message(FailureReport{static_cast<std::uint8_t>(FailureCause::server_lost), verdict.sentence}));
  decide(verdict);
}

void ControlClient::report(const FailureReport& report) {
  if (decided_) return;
  if (link_) return link_->send(write_message(report));
  // There is no rank to tell. The run is over for this rank all the same.
  const auto cause = static_cast<FailureCause>(report.cause);
  decide({own_.rank, cause == FailureCause::stopped ? ExitCode::interrupted : ExitCode::peer_failed,
          report.sentence});
}

void ControlClient::decide(const Verdict& verdict) {
  if (std::exchange(decided_, true)) return;
  meeting_.stop();
  callbacks_.decided(verdict);
}

void ControlClient::leave() {
  meeting_.stop();
  if (const auto link = std::exchange(link_, nullptr)) link->close();
}

std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks) {
  return std::make_unique<ControlClient>(loop, environment, std::move(options), std::move(callbacks));
}

}  // namespace mulligan

#include "tests/support/simulated_ranks.h"

#include <gtest/gtest.h>

#include <future>

namespace mulligan::test_support {
namespace {

LaunchEnvironment environment_of(int size) {
  LaunchEnvironment environment;
  environment.world_size = environment.local_size = size;
  environment.run_id = "simulated";
  environment.host = "127.0.0.1";
  environment.ports = {0};  // the system chooses one; no process connects to it
  return environment;
}

}  // namespace

class SimulatedRanks::SimulatedLink final : public Link {
 public:
  SimulatedLink(SimulatedRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {
    peer_address = own_address = "127.0.0.1";
    peer_on_loopback = true;
  }
  void send(Frame frames) override {
    ranks_.bytes_ += frames->size();
    ranks_.buffers_.insert(frames.get());
    last_ = std::move(frames);
  }
  void allow_large_messages() override { is_rank_ = true; }
  void close() override { on_message = nullptr, on_closed = nullptr; }

  // What a rank says to a greeting.
  void answer_greeting_of(const RunIdentity& run) {
    FrameReader frames;
    frames.add(*last_);
    const auto hello = answer_greeting(*frames.next(), run, {rank_, "simulated", 1}, random_nonce());
    receive(to_message(write_message(*hello)));
  }
  static ControlMessage to_message(const std::string& bytes) {
    FrameReader frames;
    frames.allow_large_messages();
    frames.add(bytes);
    return *frames.next();
  }
  void receive(const ControlMessage& message) {
    if (const auto take = on_message) take(message);
  }
  const Frame& last() const { return last_; }
  bool is_rank() const { return is_rank_; }

 private:
  SimulatedRanks& ranks_;
  int rank_;
  Frame last_;
  bool is_rank_ = false;
};

SimulatedRanks::SimulatedRanks(int size) : size_(size) {
  const LaunchEnvironment environment = environment_of(size);
  ControlOptions options;
  options.heartbeat = 1000;  // not in the midst of a call
  options.silent = 1e6;
  ControlEnd::Callbacks callbacks;
  callbacks.take = [this](const ControlMessage& message) {
    if (message.kind == CallResult::kind) ++done_;
    if (message.kind == Verdict::kind) ADD_FAILURE() << read_message<Verdict>(message).sentence;
  };
  options.log = [](const std::string&) {};
  callbacks.pulse = [] { return Heartbeat{}; };
  hub_ = std::make_unique<ControlServer>(loop_, environment, options, callbacks);
  on_loop([&] {
    hub_->start();
    const RunIdentity run = identity_of(environment, "");
    for (int rank = 1; rank < size; ++rank) {
      links_.push_back(std::make_shared<SimulatedLink>(*this, rank));
      hub_->greet(links_.back());
      links_.back()->answer_greeting_of(run);
      if (!links_.back()->is_rank()) ADD_FAILURE() << "rank " << rank << " was not taken in";
    }
  });
}

SimulatedRanks::~SimulatedRanks() {
  on_loop([this] { hub_->leave(); });
  loop_.stop();
}

void SimulatedRanks::on_loop(const std::function<void()>& work) {
  std::promise<void> done;
  loop_.post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

std::size_t SimulatedRanks::call(const std::string& bytes, const std::string& answer) {
  const ControlMessage message = message_of(Arrival{++sequence_, "consult", bytes});
  on_loop([&] {
    buffers_.clear();
    bytes_ = 0;
    const std::size_t before = done_;
    hub_->tell(message);
    for (const auto& link : links_) link->receive(message);
    hub_->tell(message_of(CallResult{{answer}}));
    EXPECT_EQ(done_, before + 1);
  });
  return bytes_;
}

int SimulatedRanks::answered_with(const std::string& part) const {
  int count = 0;
  for (const auto& link : links_) {
    const auto result = read_message<CallResult>(SimulatedLink::to_message(*link->last()));
    if (result.parts == std::vector<std::string>{part}) ++count;
  }
  return count;
}

}  // namespace mulligan::test_support

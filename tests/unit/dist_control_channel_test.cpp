// Messages between ranks; ranks that differ; and what many ranks cost rank 0, by links without sockets.
#include "framework/ranks/control_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <set>
#include <thread>

#include "framework/ranks/roll_call.h"
#include "tests/support/rank_group.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_control_channel_test {
namespace {

using test_support::expect_all;
using test_support::RankGroup;

// What every rank does and checks; throws what does not hold.
void exchange(ControlChannel& channel) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw run_error("{}", what);
  };
  const int rank = channel.rank();
  const auto gathered = channel.all_gather(std::string(static_cast<std::size_t>(rank), 'x'));
  require(gathered.size() == static_cast<std::size_t>(channel.world_size()), "not all were gathered");
  for (std::size_t i = 0; i < gathered.size(); ++i)
    require(gathered[i] == std::string(i, 'x'), "gathered wrong");
  require(channel.broadcast(fmt::format("from {}", rank)) == "from 0", "broadcast wrong");
  require(channel.agree(rank + 0.5) == 0.5, "agreed wrong");
  channel.barrier();
  std::array<double, 2> values{1.0 + rank, 1e17};
  channel.sum(values);
  const int n = channel.world_size();
  require(values[0] == n * (n + 1) / 2.0, "the sum is wrong");
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += one;
    return text;
  };
  std::string expected;
  for (int i = 0; i < n; ++i) expected += static_cast<char>('a' + i);
  require(channel.consult(std::string(1, static_cast<char>('a' + rank)), joined) == expected,
          "consulted wrong");
  const std::array<double, 2> parts{1e17, 1.0 + rank};
  double in_order = 0;
  for (int i = 0; i < n; ++i) in_order = in_order + 1e17 + (1.0 + i);
  require(channel.sum_in_order(parts) == in_order, "the sum in order is wrong");
  if (rank == n - 1) channel.put("key", "value");
  require(channel.get("key", 60) == "value", "a value did not come");
  require(channel.get("key", 60) == "value", "a value came once only");
}

TEST(ControlChannel, MessagesPassBetweenThreadsAndProcesses) {
  for (const int size : {1, 2, 5}) expect_all(RankGroup(size).in_threads(exchange), 0);
  expect_all(RankGroup(3).in_processes(exchange), 0);
}

TEST(ControlChannel, MessagesMayBeLargerThanOneRead) {
  expect_all(RankGroup(3).in_threads([](ControlChannel& channel) {
    std::string large((std::size_t{1} << 20) + 5, '\0');
    for (std::size_t i = 0; i < large.size(); ++i)
      large[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(channel.rank()));
    const auto all = channel.all_gather(large);
    const std::string first = channel.broadcast(large);
    if (all[static_cast<std::size_t>(channel.rank())] != large || first != all[0]) throw run_error("damaged");
  }),
             0);
  const std::string sentence = sentence_of([] {
    RankGroup group(1);
    const auto channel = meet(group.environment(0), group.options);
    channel->all_gather(std::string(largest_message, 'x'));
  });
  EXPECT_TRUE(contains(sentence, "send it in parts"));
}

TEST(ControlChannel, AnAbsentValueIsASentenceAndALateEndNoFault) {
  RankGroup group(3);
  expect_all(group.in_threads([](ControlChannel& channel) {
    const std::string sentence = sentence_of([&] { channel.get("absent", 0.05); });
    EXPECT_EQ(sentence, "no rank has put 'absent' within 0.05 s.");
    if (channel.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (channel.rank() == 2) channel.put("left", "behind");
  }),
             0);
}

// What rank 0 has sent in a call, over all links: bytes, and different buffers.
struct Sent {
  std::size_t bytes = 0;
  std::set<const std::string*> buffers;
};

// Rank 0's side of a connection without a socket.
class SimulatedLink final : public Link {
 public:
  explicit SimulatedLink(Sent& sent) : sent_(sent) { peer_on_loopback = true; }
  void send(Frame frames) override {
    sent_.bytes += frames->size();
    sent_.buffers.insert(frames.get());
    last_ = std::move(frames);
  }
  void close() override { on_message = nullptr, on_closed = nullptr; }

  void receive(const ControlMessage& message) const {
    if (const auto take = on_message) take(message);
  }
  ControlMessage last() const {
    FrameReader frames;
    frames.add(*last_);
    return *frames.next(largest_message);
  }

 private:
  Sent& sent_;
  Frame last_;
};

// Many ranks of one run without processes or sockets: rank 0's end of the control channel, and links that answer it as ranks do.
class SimulatedRanks {
 public:
  // Returns when all are there.
  explicit SimulatedRanks(int size) {
    LaunchEnvironment environment;
    environment.world_size = environment.local_size = size;
    environment.host = "127.0.0.1";
    environment.ports = {0};  // the system chooses one; no process connects to it
    ControlOptions options;
    options.heartbeat = 1000;  // not in the midst of a call
    options.silent = 1e6;
    options.log = [](const std::string&) {};
    const auto take = [this](const ControlMessage& message) {
      if (message.kind == CallResult::kind) ++done_;
      if (message.kind == Verdict::kind) ADD_FAILURE() << read_message<Verdict>(message).sentence;
    };
    hub_ = make_control_server(loop_, environment, options, {take, [] { return Heartbeat{}; }});
    on_loop([&] {
      hub_->start();
      const RunIdentity run = identity_of(environment, "");
      for (int rank = 1; rank < size; ++rank) {
        links_.push_back(std::make_shared<SimulatedLink>(sent_));
        const SimulatedLink& link = *links_.back();
        hub_->greet(links_.back());
        link.receive(message_of(*answer_greeting(link.last(), run, {rank, "simulated", 1}, random_nonce())));
        if (link.longest != largest_message) ADD_FAILURE() << "rank " << rank << " was not taken in";
      }
    });
  }
  ~SimulatedRanks() {
    on_loop([this] { hub_->leave(); });
    loop_.stop();
  }

  // Every rank comes to a call with these bytes, and rank 0 answers. Returns what it sends.
  Sent call(const std::string& bytes, const std::string& answer) {
    const ControlMessage message = message_of(Arrival{++sequence_, "consult", bytes});
    on_loop([&] {
      sent_ = {};
      hub_->tell(message);
      for (const auto& link : links_) link->receive(message);
      hub_->tell(message_of(CallResult{{answer}}));
      EXPECT_EQ(done_, sequence_);
      for (const auto& link : links_)
        EXPECT_EQ(read_message<CallResult>(link->last()).parts, std::vector{answer});
    });
    return sent_;
  }

 private:
  void on_loop(const std::function<void()>& work) {
    std::promise<void> done;
    loop_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  SocketLoop loop_{10};
  std::unique_ptr<ControlEnd> hub_;
  std::vector<std::shared_ptr<SimulatedLink>> links_;
  Sent sent_;
  std::uint64_t sequence_ = 0, done_ = 0;
};

TEST(ServerSize, AConsultationIsOneSmallMessageToEachRank) {
  std::size_t before = 0;
  for (const int size : {16, 128, 512}) {
    SimulatedRanks ranks(size);
    ranks.call(std::string(16, 'x'), "first");
    const Sent sent = ranks.call(std::string(16, 'x'), "answer");
    const std::size_t bytes = sent.bytes / static_cast<std::size_t>(size - 1);
    if (before == 0) before = bytes;
    EXPECT_EQ(bytes, before) << size << " ranks: bytes to each of them";
    EXPECT_LT(bytes, 64U);
    EXPECT_EQ(sent.buffers.size(), 1U) << "one buffer for all of them";
  }
}

RollCallEntry entry(const std::string& host, const std::string& digest) {
  return {host, 7, {{"build", "b"}, {"configuration", digest}}};
}

TEST(RollCall, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(first_difference({entry("a", "x"), entry("a", "x"), entry("b", "x")}), std::nullopt);
  EXPECT_EQ(first_difference({}), std::nullopt);
  EXPECT_EQ(first_difference({entry("a", "x"), entry("a", "x"), entry("b", "y\n")}),
            "rank 0 (a, process 7) and rank 2 (b, process 7) differ in configuration: 'x' and 'y\\n'; start "
            "all ranks with the same.");
  RollCallEntry shorter = entry("b", "x");
  shorter.facts.pop_back();
  EXPECT_TRUE(contains(*first_difference({entry("a", "x"), shorter}), "configuration: 'x' and '(not set)'"));
  EXPECT_TRUE(contains(*first_difference({shorter, entry("a", "x")}), "configuration: '(not set)' and 'x'"));
}

TEST(RollCall, EveryRankThrowsTheSame) {
  const auto expect_refused = [](const std::vector<Fact>& of_rank_1, const std::string& words) {
    const auto body = [&](ControlChannel& channel) {
      call_roll(channel, {{"build", "b"}});
      call_roll(channel, channel.rank() == 1 ? of_rank_1 : std::vector<Fact>{{"configuration", "a"}});
    };
    expect_all(RankGroup(3).in_threads(body), static_cast<int>(ExitCode::bad_configuration), {words});
  };
  expect_refused({{"configuration", "b"}}, "differ in configuration: 'a' and 'b'");
  expect_refused({{"configuration", "a"}, {"configuration", "a"}}, "ranks differ in the number of");
}

}  // namespace
}  // namespace mulligan::dist_control_channel_test

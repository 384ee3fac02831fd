// How ranks meet, and who is refused.
#include <gtest/gtest.h>

#include <thread>

#include "framework/core/file.h"
#include "framework/ranks/handshake.h"
#include "tests/support/rank_group.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_meeting_test {
namespace {

using test_support::Lines;
using test_support::Outcome;
using test_support::RankGroup;
using test_support::RawConnection;
using test_support::RawListener;

constexpr int config = static_cast<int>(ExitCode::bad_configuration);
constexpr int peer = static_cast<int>(ExitCode::peer_failed);

void nothing(ControlChannel&) {}

TEST(Meeting, TakenPortsAreLeftAlone) {
  RankGroup group(3);
  // Neither says a word; the second one takes connections up, of the ranks that come by before they find rank 0.
  const RawListener first(group.ports[0]), second(group.ports[1]);
  std::thread accepting([&] {
    for (int socket = second.accept(); socket >= 0; socket = second.accept()) close(socket);
  });
  for (const Outcome& outcome : group.in_threads([](ControlChannel& channel) { channel.barrier(); })) {
    EXPECT_EQ(outcome.code, 0) << outcome.sentence;
  }
  second.stop();
  accepting.join();
}

TEST(Meeting, NoPortIsFree) {
  RankGroup group(2);
  group.ports.resize(1);
  const RawListener taken(group.ports[0]);
  const std::string sentence = sentence_of([&] { meet(group.environment(0), group.options); });
  EXPECT_TRUE(contains(sentence, fmt::format("none of the ports {0} to {0}", group.ports[0])));
}

TEST(Meeting, AnotherSecretIsRefusedOnBothSides) {
  RankGroup group(2);
  group.change = [](const LaunchEnvironment& environment, ControlOptions& options) {
    options.secret = environment.rank == 0 ? "right" : "wrong";
  };
  for (const Outcome& outcome : group.in_threads(nothing)) {
    EXPECT_EQ(outcome.code, config) << outcome.sentence;
    EXPECT_TRUE(contains(outcome.sentence, "rank 1 ("));
    EXPECT_TRUE(contains(outcome.sentence, "has another secret than rank 0"));
  }
}

TEST(Meeting, TheSecretIsNotKnownToWhoOnlyListens) {
  // A false rank 0 that takes everyone: its proof is wrong.
  RankGroup group(2);
  group.ports.resize(1);
  const RawListener listener(group.ports[0]);
  std::thread false_rank0([&] {
    RawConnection connection(listener.accept());
    connection.send(write_message(Greeting{}));
    const auto hello = read_message<Hello>(connection.receive());
    EXPECT_EQ(hello.run_id, "test");
    connection.send(write_message(Welcome{}));
    connection.wait_for_end();
  });
  group.options.secret = "right";
  const Outcome outcome = group.run_rank(1, nothing);
  EXPECT_EQ(outcome.code, config);
  EXPECT_TRUE(contains(outcome.sentence, "has another secret"));
  false_rank0.join();
}

TEST(Meeting, AnotherNumberOfRanksIsRefusedOnBothSides) {
  RankGroup group(2);
  group.change = [](LaunchEnvironment& environment, ControlOptions&) {
    if (environment.rank == 1) environment.world_size = 4;
  };
  for (const Outcome& outcome : group.in_threads(nothing)) {
    EXPECT_EQ(outcome.code, config) << outcome.sentence;
    EXPECT_TRUE(contains(outcome.sentence, "one of 4 ranks, and rank 0 as one of 2"));
  }
}

TEST(Meeting, TwoOfOneRankAreRefused) {
  RankGroup group(4);
  group.absent = {3};
  group.change = [](LaunchEnvironment& environment, ControlOptions&) {
    if (environment.rank == 2) environment.rank = 1;
  };
  const auto outcomes = group.in_threads(nothing);
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, config) << outcome.sentence;
    EXPECT_TRUE(contains(outcome.sentence, "two processes are rank 1"));
  }
}

TEST(Meeting, TwoOfRankZeroAreRefused) {
  RankGroup group(3);
  group.absent = {2};
  group.change = [](LaunchEnvironment& environment, ControlOptions&) { environment.rank = 0; };
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = group.in_threads(nothing)[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, config) << outcome.sentence;
    EXPECT_TRUE(contains(outcome.sentence, "two processes are rank 0"));
  }
}

TEST(Meeting, ALatecomerDoesNotDisturbTheRun) {
  RankGroup group(2);
  Lines log;
  group.options.log = log.sink();
  const auto outcomes = group.in_threads([&](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 0) {
      const Outcome late = group.run_rank(1, nothing);
      EXPECT_EQ(late.code, config);
      EXPECT_TRUE(contains(late.sentence, "two processes are rank 1"));
    }
    channel.barrier();
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 0) << outcome.sentence;
  EXPECT_TRUE(contains(log.text(), "warning: two processes are rank 1"));
}

TEST(Meeting, AnotherVersionIsRefusedOnBothSides) {
  RankGroup group(2);
  group.options.meet = 1;
  Lines log;
  group.options.log = log.sink();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    RawConnection connection(group.ports[0]);
    connection.receive();
    Hello hello;
    hello.mark.version = 9;
    connection.send(write_message(hello));
    const auto refusal = read_message<Refusal>(connection.receive());
    EXPECT_TRUE(contains(refusal.sentence, "speaks version 9 of the control protocol"));
  });
  group.absent = {1};
  const Outcome server = group.in_threads(nothing)[0];
  other.join();
  EXPECT_TRUE(contains(server.sentence, "speaks version 9 of the control protocol"));

  group.ports = test_support::free_ports();
  group.options.meet = 60;
  const RawListener listener(group.ports[0]);
  std::thread false_rank0([&] {
    RawConnection connection(listener.accept());
    Greeting greeting;
    greeting.mark.version = 9;
    connection.send(write_message(greeting));
    connection.wait_for_end();
  });
  const Outcome rank1 = group.run_rank(1, nothing);
  false_rank0.join();
  EXPECT_EQ(rank1.code, config);
  EXPECT_TRUE(contains(rank1.sentence, "rank 0 speaks version 9"));
}

TEST(Meeting, AnotherRunAtThePortIsPassedBy) {
  RankGroup group(2), other(2);
  other.ports = group.ports;
  other.change = [](LaunchEnvironment& environment, ControlOptions&) { environment.run_id = "other"; };
  std::thread third([&] {
    for (const Outcome& outcome : other.in_threads([](ControlChannel& channel) { channel.barrier(); })) {
      EXPECT_EQ(outcome.code, 0) << outcome.sentence;
    }
  });
  for (const Outcome& outcome : group.in_threads([](ControlChannel& channel) { channel.barrier(); })) {
    EXPECT_EQ(outcome.code, 0) << outcome.sentence;
  }
  third.join();
}

TEST(Meeting, MissingRanksAreNamed) {
  RankGroup group(6);
  group.absent = {2, 3, 5};
  group.options.meet = 1;
  group.options.missing_log_interval = 0.2;
  Lines log;
  group.options.log = log.sink();
  const auto outcomes = group.in_threads(nothing);
  for (const int rank : {0, 1, 4}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, peer) << outcome.sentence;
    EXPECT_TRUE(contains(outcome.sentence, "ranks 2 to 3, 5 of 6 did not come"));
  }
  EXPECT_TRUE(contains(log.text(), "rank 0 waits for ranks 2 to 3, 5 of 6"));
}

TEST(Meeting, RankZeroIsMissing) {
  RankGroup group(2);
  group.absent = {0};
  group.options.meet = 0.5;
  group.options.missing_log_interval = 0.1;
  Lines log;
  group.options.log = log.sink();
  const Outcome outcome = group.in_threads(nothing)[1];
  EXPECT_EQ(outcome.code, peer);
  EXPECT_TRUE(contains(outcome.sentence, "did not find rank 0 at 127.0.0.1 ports"));
  EXPECT_TRUE(contains(outcome.sentence, "refused"));
  EXPECT_TRUE(contains(log.text(), "rank 1 looks for rank 0"));
}

TEST(Meeting, OtherMachinesNeedASecret) {
  RankGroup group(2);
  LaunchEnvironment environment = group.environment(1);
  environment.host = "node7";
  const std::string sentence = sentence_of([&] { meet(environment, group.options); });
  EXPECT_TRUE(contains(sentence, "meet at node7"));
  EXPECT_TRUE(contains(sentence, "MULLIGAN_SECRET_FILE"));
  // Rank 0 does not take one up without it either.
  const RunIdentity run{"test", "address", 0, 2, ""};
  Greeting greeting;
  const auto hello =
      answer_greeting({Greeting::kind, to_wire(greeting)}, run, {1, "node7", 5}, random_nonce());
  ASSERT_TRUE(hello);
  const ControlMessage answer{Hello::kind, to_wire(*hello)};
  EXPECT_EQ(judge_hello(answer, greeting.nonce, run, "10.0.0.7", true).admission,
            Judgement::Admission::accepted);
  const Judgement judgement = judge_hello(answer, greeting.nonce, run, "10.0.0.7", false);
  EXPECT_EQ(judgement.admission, Judgement::Admission::refused);
  EXPECT_TRUE(contains(judgement.sentence, "MULLIGAN_SECRET"));
}

TEST(Meeting, SecretsComeFromEnvironmentOrFile) {
  const test_support::ScratchFolder scratch;
  std::string secret, file;
  const EnvironmentLookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "MULLIGAN_SECRET") return secret;
    return name == "MULLIGAN_SECRET_FILE" ? std::optional(file) : std::nullopt;
  };
  EXPECT_EQ(find_secret(lookup), "");
  file = scratch / "secret";
  EXPECT_TRUE(
      contains(sentence_of([&] { find_secret(lookup); }), "MULLIGAN_SECRET_FILE names no readable secret"));
  write_file_atomically(file, "\n");
  EXPECT_TRUE(contains(sentence_of([&] { find_secret(lookup); }), "empty line"));
  write_file_atomically(file, "abc def\r\nmore\n");
  EXPECT_EQ(find_secret(lookup), "abc def");
  secret = "first";
  EXPECT_EQ(find_secret(lookup), "first");
}

TEST(Meeting, AnUnknownInterfaceIsNamed) {
  RankGroup group(2);
  group.options.secret = "secret";
  LaunchEnvironment environment = group.environment(0);
  environment.host = "node7";
  environment.interface_name = "eth99";
  const std::string sentence = sentence_of([&] { meet(environment, group.options); });
  EXPECT_TRUE(contains(sentence, "'eth99'"));
  EXPECT_TRUE(contains(sentence, "lo"));
}

}  // namespace
}  // namespace mulligan::dist_meeting_test

// How ranks meet, and who is refused; the secret of ranks that were given none.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "framework/core/file.h"
#include "framework/ranks/control_options.h"
#include "framework/ranks/handshake.h"
#include "tests/support/rank_group.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_meeting_test {
namespace {

using test_support::expect_all;
using test_support::Outcome;
using test_support::RankGroup;
using test_support::RawConnection;
using test_support::RawListener;

constexpr int config = static_cast<int>(ExitCode::bad_configuration);
constexpr int peer = static_cast<int>(ExitCode::peer_failed);

void nothing(ControlChannel&) {}
void meet_once(ControlChannel& channel) {
  channel.barrier();
}

TEST(Meeting, TakenPortsAreLeftAlone) {
  RankGroup group(3);
  // Neither says a word; the second one takes connections up, of the ranks that come by before they find rank 0.
  const RawListener first(group.ports[0]), second(group.ports[1]);
  std::thread accepting([&] {
    for (int socket = second.accept(); socket >= 0; socket = second.accept()) close(socket);
  });
  expect_all(group.in_threads(meet_once), 0);
  second.stop();
  accepting.join();
}

TEST(Meeting, NoPortIsFree) {
  RankGroup group(2);
  group.ports.resize(1);
  const RawListener taken(group.ports[0]);
  const std::string sentence = sentence_of([&] { meet(group.environment(0), group.options); });
  EXPECT_TRUE(contains(sentence, fmt::format("none of the ports {0} to {0}", group.ports[0])));
  group.options.meet = 1;
  EXPECT_TRUE(contains(group.run_rank(1, nothing).sentence, "did not find rank 0 at 127.0.0.1 ports"));
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
    EXPECT_EQ(hello.run.run_id, "test");
    connection.send(write_message(Welcome{}));
    connection.wait_for_end();
  });
  group.options.secret = "right";
  const Outcome outcome = group.run_rank(1, nothing);
  EXPECT_EQ(outcome.code, config);
  EXPECT_TRUE(contains(outcome.sentence, "has another secret"));
  false_rank0.join();
}

// Ranks that `change` keeps from being one run all end with these words. `absent`: 1 if the last is not started.
void expect_refused(int size, int absent, const decltype(RankGroup::change)& change,
                    const std::vector<std::string>& words) {
  RankGroup group(size);
  if (absent > 0) group.absent = {size - 1};
  group.change = change;
  auto outcomes = group.in_threads(nothing);
  outcomes.resize(static_cast<std::size_t>(size - absent));
  expect_all(outcomes, config, words);
}

TEST(Meeting, RanksThatCannotBeOneRunAreRefusedOnBothSides) {
  using Place = LaunchEnvironment;
  expect_refused(
      2, 0, [](Place& own, ControlOptions& options) { options.secret = own.rank == 0 ? "right" : "wrong"; },
      {"rank 1 (", "has another secret than rank 0"});
  expect_refused(2, 0, [](Place& own, ControlOptions&) { own.world_size += 2 * own.rank; },
                 {"one of 4 ranks, and rank 0 as one of 2"});
  expect_refused(4, 1, [](Place& own, ControlOptions&) { own.rank = std::min(own.rank, 1); },
                 {"two processes are rank 1"});
  expect_refused(3, 1, [](Place& own, ControlOptions&) { own.rank = 0; }, {"two processes are rank 0"});
}

TEST(Meeting, ALatecomerDoesNotDisturbTheRun) {
  RankGroup group(2);
  const auto outcomes = group.in_threads([&](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 0) {
      const Outcome late = group.run_rank(1, nothing);
      EXPECT_EQ(late.code, config);
      EXPECT_TRUE(contains(late.sentence, "two processes are rank 1"));
    }
    channel.barrier();
  });
  expect_all(outcomes, 0);
  EXPECT_TRUE(contains(group.log->text(), "warning: two processes are rank 1"));
}

TEST(Meeting, AnotherVersionIsRefusedOnBothSides) {
  RankGroup group(2);
  group.options.meet = 1;
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
  std::thread third([&] { expect_all(other.in_threads(meet_once), 0); });
  expect_all(group.in_threads(meet_once), 0);
  third.join();
}

TEST(Meeting, MissingRanksAreNamed) {
  RankGroup group(6);
  group.absent = {2, 3, 5};
  group.options.meet = 1;
  group.options.missing_log_interval = 0.2;
  const auto outcomes = group.in_threads(nothing);
  expect_all({outcomes[0], outcomes[1], outcomes[4]}, peer, {"ranks 2-3,5 of 6 did not come"});
  EXPECT_TRUE(contains(group.log->text(), "rank 0 waits for ranks 2-3,5 of 6"));
}

TEST(Meeting, RankZeroIsMissing) {
  RankGroup group(2);
  group.absent = {0};
  group.options.meet = 0.5;
  group.options.missing_log_interval = 0.1;
  const Outcome outcome = group.in_threads(nothing)[1];
  EXPECT_EQ(outcome.code, peer);
  EXPECT_TRUE(contains(outcome.sentence, "did not find rank 0 at 127.0.0.1 ports", "refused"));
  EXPECT_TRUE(contains(group.log->text(), "rank 1 looks for rank 0"));
}

TEST(Meeting, OtherMachinesNeedASecret) {
  RankGroup group(2);
  LaunchEnvironment environment = group.environment(1);
  environment.host = "node7";
  const std::string sentence = sentence_of([&] { meet(environment, group.options); });
  EXPECT_TRUE(contains(sentence, "meet at node7", "MULLIGAN_SECRET_FILE"));
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
  EXPECT_TRUE(refuses([&] { find_secret(lookup); }, "MULLIGAN_SECRET_FILE names no readable secret"));
  write_file_atomically(file, "\n");
  EXPECT_TRUE(refuses([&] { find_secret(lookup); }, "empty line"));
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
  EXPECT_TRUE(refuses([&] { meet(environment, group.options); }, "'eth99'", "lo"));
}

namespace fs = std::filesystem;
using test_support::ScratchFolder;

EnvironmentLookup home_at(const fs::path& home) {
  return [home](const std::string& name) {
    return name == "HOME" ? std::optional(home.string()) : std::nullopt;
  };
}

TEST(UserSecret, IsMadeOnceAndForThisUserAlone) {
  const ScratchFolder home;
  const std::string secret = user_secret(home_at(home.path()));
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(user_secret(home_at(home.path())), secret);
  struct stat found {};
  ASSERT_EQ(stat((home.path() / ".mulligan" / "secret").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  ASSERT_EQ(stat((home.path() / ".mulligan").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  EXPECT_EQ(std::distance(fs::directory_iterator(home.path() / ".mulligan"), {}), 1);
  const ScratchFolder other;
  EXPECT_NE(user_secret(home_at(other.path())), secret);
}

TEST(UserSecret, RanksThatComeAtOnceGetTheSame) {
  const ScratchFolder home;
  std::vector<std::string> secrets(8);
  std::vector<std::thread> threads;
  for (std::string& secret : secrets)
    threads.emplace_back([&] { secret = user_secret(home_at(home.path())); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1U);
}

TEST(UserSecret, WhatOthersMayReadOrChangeIsRefused) {
  const ScratchFolder home;
  user_secret(home_at(home.path()));
  const fs::path folder = home.path() / ".mulligan", file = folder / "secret";
  const auto refusal = [&] { return sentence_of([&] { user_secret(home_at(home.path())); }); };
  fs::permissions(file, fs::perms(0640));
  EXPECT_TRUE(contains(refusal(), "others may read"));
  fs::permissions(file, fs::perms(0600));
  fs::permissions(folder, fs::perms(0722));
  EXPECT_TRUE(contains(refusal(), "others may write to"));
  fs::permissions(folder, fs::perms(0700));
  fs::remove(file);
  fs::create_symlink("/etc/hostname", file);
  EXPECT_TRUE(contains(refusal(), "is not a file"));
  fs::remove(file);
  write_file_atomically(file, "\n");
  fs::permissions(file, fs::perms(0600));
  EXPECT_TRUE(contains(refusal(), "empty line"));
}

}  // namespace
}  // namespace mulligan::dist_meeting_test

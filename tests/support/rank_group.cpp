#include "tests/support/rank_group.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::test_support {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int new_socket() {
  const int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(result, 0);
  return result;
}

}  // namespace

std::vector<std::uint16_t> free_ports() {
  const int probe = new_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(probe, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(probe);
  std::vector<std::uint16_t> ports;
  const int first = std::min<int>(ntohs(address.sin_port), 65530);
  for (int i = 0; i < 5; ++i) ports.push_back(static_cast<std::uint16_t>(first + i));
  return ports;
}

RankGroup::RankGroup() {
  options.meet = 60;
  options.heartbeat = 0.05;
  options.silent = 5;  // other tests run at the same time
  options.refusal_grace = 0.3;
  options.watchdog = 0;
  options.log = log->sink();
}

LaunchEnvironment RankGroup::environment(int rank) const {
  LaunchEnvironment one;
  one.launcher = "env";
  one.rank = one.local_rank = rank;
  one.world_size = one.local_size = size;
  one.run_id = "test";
  one.host = "127.0.0.1";
  one.ports = ports;
  return one;
}

Outcome RankGroup::run_rank(int rank, const Body& body) const {
  LaunchEnvironment environment = this->environment(rank);
  ControlOptions own = options;
  if (change) change(environment, own);
  try {
    const auto channel = meet(environment, own);
    try {
      body(*channel);
      channel->finish();
    } catch (const Error& error) {
      throw channel->report_failure(error);
    }
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}

std::vector<Outcome> RankGroup::in_threads(const Body& body) const {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    if (std::ranges::count(absent, rank)) continue;
    threads.emplace_back([&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_rank(rank, body); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Outcome> RankGroup::in_processes(
    const Body& body, const std::function<void(const std::vector<int>&)>& meanwhile) const {
  const ScratchFolder scratch;
  const auto file = [&](int rank) { return scratch.path() / std::to_string(rank); };
  std::vector<int> processes(static_cast<std::size_t>(size), -1);
  int met[2];  // a pipe: one byte of each rank that has met the others
  EXPECT_EQ(pipe2(met, O_CLOEXEC), 0);
  const auto tell_and_run = [&](ControlChannel& channel) {
    EXPECT_EQ(write(met[1], "", 1), 1);
    body(channel);
  };
  for (int rank = 0; rank < size; ++rank) {
    if (std::ranges::count(absent, rank)) continue;
    const pid_t process = fork();
    if (process == 0) {
      const Outcome outcome = run_rank(rank, tell_and_run);
      write_file_atomically(file(rank), outcome.sentence);
      _exit(outcome.code);
    }
    processes[static_cast<std::size_t>(rank)] = process;
  }
  close(met[1]);
  if (meanwhile) {
    char byte = 0;
    for (std::size_t i = absent.size(); i < processes.size(); ++i) {
      EXPECT_EQ(read(met[0], &byte, 1), 1) << "a rank did not meet the others";
    }
    meanwhile(processes);
  }
  close(met[0]);
  std::vector<Outcome> outcomes(processes.size());
  for (int rank = 0; rank < size; ++rank) {
    const int process = processes[static_cast<std::size_t>(rank)];
    if (process < 0) continue;
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (std::filesystem::exists(file(rank))) outcome.sentence = read_file(file(rank));
  }
  return outcomes;
}

RawConnection::RawConnection(std::uint16_t port) : socket_(new_socket()) {
  const sockaddr_in address = loopback(port);
  int failed = -1;
  for (int tries = 0; tries < 6000 && failed != 0; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    failed = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  EXPECT_EQ(failed, 0);
}

RawConnection::~RawConnection() {
  close(socket_);
}

void RawConnection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the other side has closed, as it may
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

ControlMessage RawConnection::receive() {
  while (true) {
    if (auto message = frames_.next(largest_handshake)) return *message;
    char bytes[4096];
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) {
      ADD_FAILURE() << "no message came";
      return {};
    }
    frames_.add({bytes, static_cast<std::size_t>(count)});
  }
}

void expect_all(const std::vector<Outcome>& outcomes, int code, const std::vector<std::string>& parts) {
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, code) << outcome.sentence;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.sentence.find(part), std::string::npos) << outcome.sentence;
  }
}

void RawConnection::wait_for_end() {
  char bytes[4096];
  while (recv(socket_, bytes, sizeof bytes, 0) > 0) {
  }
}

RawListener::RawListener(std::uint16_t port) : socket_(new_socket()) {
  const int yes = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(socket_, 100), 0);
}

RawListener::~RawListener() {
  close(socket_);
}

int RawListener::accept() const {
  return ::accept(socket_, nullptr, nullptr);
}

void RawListener::stop() const {
  shutdown(socket_, SHUT_RDWR);
}

}  // namespace mulligan::test_support

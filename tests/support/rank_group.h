// Several ranks of a run in one test: as threads, or as processes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/ranks/control_channel.h"

namespace mulligan::test_support {

// How a rank ended: an exit code of ExitCode (of processes also 128 + signal) and the sentence of its Error.
struct Outcome {
  int code = 0;
  std::string sentence;
};

// Five ports on the loopback. The first one was free a moment ago.
std::vector<std::uint16_t> free_ports();

// Lines of logs, from any thread.
class Lines {
 public:
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      text_ += line + "\n";
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

struct RankGroup {
  int size = 2;
  std::vector<std::uint16_t> ports = free_ports();
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  ControlOptions options;   // those of quick tests, with that log
  std::vector<int> absent;  // ranks that are not started
  std::function<void(LaunchEnvironment&, ControlOptions&)>
      change;  // for one rank, before it meets the others

  RankGroup();
  explicit RankGroup(int ranks) : RankGroup() { size = ranks; }
  LaunchEnvironment environment(int rank) const;

  // What a rank does between meeting and finishing. An Error that it throws is reported as a trainer does.
  using Body = std::function<void(ControlChannel&)>;
  Outcome run_rank(int rank, const Body& body) const;
  std::vector<Outcome> in_threads(const Body& body) const;
  // Forks: rank r is process r. `meanwhile` gets their process numbers once all have met.
  std::vector<Outcome> in_processes(const Body& body,
                                    const std::function<void(const std::vector<int>&)>& meanwhile = {}) const;
};

// All ended with `code` and a sentence that contains each of `parts`.
void expect_all(const std::vector<Outcome>& outcomes, int code, const std::vector<std::string>& parts = {});

// A socket of its own that is connected to a port of the loopback, as soon as that is open; closes itself.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port);
  explicit RawConnection(int accepted) : socket_(accepted) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  void send(std::string_view bytes) const;
  // The next message. Fails the test where there is none.
  ControlMessage receive();
  // Waits until the other side has closed.
  void wait_for_end();

 private:
  int socket_;
  FrameReader frames_;
};

// Somebody else's listening socket.
class RawListener {
 public:
  explicit RawListener(std::uint16_t port);
  ~RawListener();
  RawListener(const RawListener&) = delete;
  int accept() const;  // the socket; -1 after stop()
  void stop() const;

 private:
  int socket_;
};

}  // namespace mulligan::test_support

// The handshake of a rank with rank 0, over bytes and without sockets. Rank 0 greets with a nonce. The rank answers with its own
// nonce, its run and number, and a proof that it has the secret. Rank 0 proves the same, or refuses with a sentence.
#pragma once

#include <optional>
#include <string>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/launch_environment.h"

namespace mulligan {

// A process as messages name it.
struct RankName {
  int rank = 0;
  std::string host;
  std::uint32_t process = 0;
  std::string text() const;  // "rank 3 (node7, process 4711)"
};

// This process.
RankName own_name(int rank);

// The common identity of a run's ranks, and the secret. The address, a port, only tells runs apart.
struct RunIdentity {
  std::string run_id, address;
  std::uint32_t restart_count = 0, world_size = 0;
  std::string secret;
};

RunIdentity identity_of(const LaunchEnvironment& environment, const std::string& secret);

// 32 random bytes of the system. Throws run_error if it has none.
Nonce random_nonce();

// A rank's answer; nothing if the greeting is not this program's. Throws config_error if it is of another version.
std::optional<Hello> answer_greeting(const ControlMessage& greeting, const RunIdentity& run,
                                     const RankName& own, const Nonce& nonce);

inline constexpr std::uint32_t no_rank = 0xFFFFFFFF;

// Rank 0's judgement of an answer.
struct Judgement {
  enum class Admission { accepted, other_run, refused, stranger };
  Admission admission = Admission::stranger;
  bool authentic = false;  // the proof is right: the sender belongs to the run
  Hello hello;             // rank no_rank if it could not be read
  std::string sentence;    // why not
};
// `from`: the peer's address, for messages. `on_loopback`: whether it is on this machine. A malformed answer counts as a
// stranger's.
Judgement judge_hello(const ControlMessage& answer, const Nonce& greeted_with, const RunIdentity& run,
                      const std::string& from, bool on_loopback);

Welcome welcome(const Hello& hello, const Nonce& greeted_with, const RunIdentity& run, const RankName& own);
// Whether rank 0 has the secret.
bool is_authentic(const Welcome& welcome, const Hello& hello, const Nonce& greeted_with,
                  const RunIdentity& run);

}  // namespace mulligan

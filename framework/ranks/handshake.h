// The handshake of a rank with rank 0, over bytes and without sockets. Rank 0 greets with a nonce. The rank answers with its own
// nonce, its run and number, and a proof that it has the secret. Rank 0 proves the same, or refuses with a sentence.
#pragma once

#include <optional>
#include <string>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/launch_environment.h"

namespace mulligan {

// This process.
RankName own_name(int rank);

RunIdentity identity_of(const LaunchEnvironment& environment, const std::string& secret);

// 32 random bytes of the system. Throws run_error if it has none.
Nonce random_nonce();

// A rank's answer; nothing if the greeting is not this program's. Throws config_error if it is of another version.
std::optional<Hello> answer_greeting(const ControlMessage& greeting, const RunIdentity& run,
                                     const RankName& own, const Nonce& nonce);

// Rank 0's judgement of an answer.
struct Judgement {
  enum class Admission { accepted, other_run, refused, stranger };
  Admission admission = Admission::stranger;
  bool authentic = false;  // the proof is right: the sender belongs to the run
  Hello hello;             // rank -1 if it could not be read
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

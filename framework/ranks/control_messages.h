// The messages of the control channel. Each is a struct with its kind and its fields (wire.h). It travels as a frame of three parts: the
// length of its payload (4 bytes), the kind of message (1) and the payload.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ranks/wire.h"

namespace mulligan {

inline constexpr std::size_t frame_header_bytes = 5;
inline constexpr std::size_t largest_message = std::size_t{1} << 28;    // bytes of a payload
inline constexpr std::size_t largest_handshake = std::size_t{1} << 12;  // before the handshake is done

struct ControlMessage {
  std::uint8_t kind = 0;
  std::string payload;
};

// Throws run_error if the payload is larger than largest_message.
std::string to_frame(std::uint8_t kind, std::string_view payload);

// Finds messages in bytes that come in pieces of any size.
class FrameReader {
 public:
  // Adds bytes.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message, or nothing yet. Throws run_error if its payload has more than `longest` bytes (known from its length, before
  // its bytes are there). After that the reader must not be used.
  std::optional<ControlMessage> next(std::size_t longest);

 private:
  std::string bytes_;
  std::size_t read_ = 0;  // of bytes_
};

inline constexpr std::uint32_t control_version = 3;
inline constexpr std::size_t largest_text = largest_message - 1024;  // of a rank, within a message

using Nonce = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;  // HMAC-SHA256

// Every message before the version is known starts with this.
struct ProtocolMark {
  std::array<unsigned char, 8> magic{'m', 'u', 'l', 'l', 'i', 'g', 'a', 'n'};
  std::uint32_t version = control_version;
  auto fields() { return std::tie(magic, version); }
  bool is_ours() const { return magic == ProtocolMark().magic; }
};

// From rank 0 to every client that connects.
struct Greeting {
  static constexpr std::uint8_t kind = 1;
  ProtocolMark mark;
  Nonce nonce{};
  auto fields() { return std::tie(mark, nonce); }
};

// A process as messages to people name it.
struct RankName {
  int rank = 0;
  std::string host;
  std::uint32_t process = 0;

  std::string text() const;  // "rank 3 (node7, process 4711)"
};

// "0-3,8"
std::string number_list(std::vector<int> numbers);

// The common identity of a run's ranks, and the secret, which is never sent. The address, a port, only tells runs apart.
struct RunIdentity {
  std::string run_id, address;
  std::uint32_t restart_count = 0, world_size = 0;
  std::string secret;
};

// The run, and the sender's place in it.
struct Hello {
  static constexpr std::uint8_t kind = 2;
  ProtocolMark mark;
  Nonce nonce{};
  RunIdentity run;
  RankName name;
  Proof proof{};
  auto fields() {
    return std::tie(mark, nonce, run.run_id, run.address, run.restart_count, name.rank, run.world_size,
                    name.host, name.process, proof);
  }
};

// Rank 0 also has the secret and has accepted the rank.
struct Welcome {
  static constexpr std::uint8_t kind = 3;
  Proof proof{};
  RankName name;  // of rank 0

  auto fields() { return std::tie(proof, name.host, name.process); }
};

struct Refusal {
  static constexpr std::uint8_t kind = 4;
  std::uint8_t other_run = 0;  // 1: another rank 0 may be at another port
  std::string sentence;
  auto fields() { return std::tie(other_run, sentence); }
};

// The progress of a rank, about once a second. It also shows that the rank lives.
struct Heartbeat {
  static constexpr std::uint8_t kind = 5;
  std::uint64_t submitted = 0, completed = 0;  // batches of transfers
  std::uint64_t steps = 0;
  std::uint64_t calls = 0;     // collective calls of the HostGroup that were begun
  std::uint64_t entered = 0;   // calls of the communicator's library that were begun
  std::uint8_t in_call = 0;    // WaitsIn
  std::uint8_t long_work = 0;  // 1: counters may stand still for longer
  double waited_seconds = 0;   // for other ranks, in all
  auto fields() {
    return std::tie(submitted, completed, steps, calls, entered, in_call, long_work, waited_seconds);
  }
};

// What a rank waits in, if it does not work itself.
enum WaitsIn : std::uint8_t {
  waits_in_nothing = 0,
  waits_in_call = 1,          // a call of the HostGroup
  waits_in_farewell = 2,      // the last of them
  waits_in_communicator = 3,  // a call of the communicator's library
};

// A rank has reached its collective call number `sequence`.
struct Arrival {
  static constexpr std::uint8_t kind = 6;
  std::uint64_t sequence = 0;
  std::string call;  // HostGroup::call()
  std::string bytes;
  auto fields() { return std::tie(sequence, call, bytes); }
};

// The end of a call. From rank 0 to all: its answer, one part. Within rank 0 before that: the bytes of all, by rank.
struct CallResult {
  static constexpr std::uint8_t kind = 7;
  std::vector<std::string> parts;
  auto fields() { return std::tie(parts); }
};

// To rank 0, which passes it on to all.
struct Put {
  static constexpr std::uint8_t kind = 8;
  std::string key, value;
  auto fields() { return std::tie(key, value); }
};

enum class FailureCause : std::uint8_t {
  own = 1,            // of this rank: an exception
  communication = 2,  // a transfer failed, maybe because another rank is gone
  stopped = 3,        // a signal: no fault
  server_lost = 4,    // this rank gave up rank 0: its own verdict, sent to a rank 0 that resumes later
};

// A rank's own failure or stop, sent to rank 0.
struct FailureReport {
  static constexpr std::uint8_t kind = 11;
  FailureCause cause = FailureCause::own;
  std::string sentence;
  auto fields() { return std::tie(cause, sentence); }
};

// The reason that ended a run of several ranks, decided once by rank 0 and sent to all of them.
struct Verdict {
  static constexpr std::uint8_t kind = 12;
  std::int32_t culprit = -1;              // its rank; -1: no single rank
  ExitCode code = ExitCode::peer_failed;  // of the other ranks: peer_failed; bad_configuration if all
                                          // disagree; interrupted if one was stopped
  std::string sentence;
  auto fields() { return std::tie(culprit, code, sentence); }

  // The error that a rank ends with. The culprit of a failure has run_failed, unless it has an error of its own.
  Error error_of(int rank) const {
    const bool failed_itself = rank == culprit && code == ExitCode::peer_failed;
    return Error(failed_itself ? ExitCode::run_failed : code, sentence);
  }
};

// To rank 0: this rank is done. From rank 0: all ranks are done.
struct Farewell {
  static constexpr std::uint8_t kind = 13;
  auto fields() { return std::tie(); }
};

// The message of a frame. Throws run_error if the kind differs or the payload is malformed.
template <typename Message>
Message read_message(const ControlMessage& message) {
  if (message.kind != Message::kind) {
    throw run_error("a message of kind {} came where kind {} belongs.", message.kind, Message::kind);
  }
  return from_wire<Message>(message.payload);
}

template <typename Message>
ControlMessage message_of(const Message& message) {
  return {Message::kind, to_wire(message)};
}

template <typename Message>
std::string write_message(const Message& message) {
  return to_frame(Message::kind, to_wire(message));
}

}  // namespace mulligan

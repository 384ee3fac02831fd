// Input: a letter and what it is about. 'f': a byte of options and the bytes of a connection. 'h': an answer to rank 0's
// greeting; 'p': the same, with the proof put right. 'g': rank 0's greeting. 'w': its welcome. 'r': answers to the roll call,
// divided by lines ====. 'l': lines NAME=VALUE of a launcher's environment.
#include <algorithm>
#include <map>

#include "framework/core/printable.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/roll_call.h"
#include "tests/fuzz/fuzz_target.h"

namespace mulligan::fuzz {
namespace {

const RunIdentity our_run{"run", "host:1", 0, 4, "secret"};

void require_printable(const std::string& sentence) {
  require(printable(sentence) == sentence, "a sentence could steer a terminal");
}

// What was read is written as it came.
template <typename Message>
void read_back(const ControlMessage& message) {
  if (message.kind != Message::kind) return;
  const auto read = unless_refused([&] { return read_message<Message>(message); });
  if (read) require(to_wire(*read) == message.payload, "a message does not read back");
}

template <typename... Messages>
void read_any(const ControlMessage& message) {
  (read_back<Messages>(message), ...);
}

// The messages of a connection must not depend on the pieces in which its bytes come.
std::vector<ControlMessage> messages_of(std::string_view bytes, std::size_t piece, bool large,
                                        bool& refused) {
  std::vector<ControlMessage> messages;
  FrameReader reader;
  refused = !unless_refused([&] {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(bytes.substr(at, piece));
      while (auto message = reader.next(large ? largest_message : largest_handshake))
        messages.push_back(std::move(*message));
    }
    return true;
  });
  return messages;
}

void read_frames(std::string_view input) {
  if (input.empty()) return;
  const auto options = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const bool large = options % 2 == 1;
  bool refused = false, refused_whole = false;
  const auto pieces = messages_of(input, 1 + options / 2, large, refused);
  const auto whole = messages_of(input, std::max<std::size_t>(input.size(), 1), large, refused_whole);
  require(refused == refused_whole && pieces.size() == whole.size(), "pieces change what is read");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    require(whole[i].payload == pieces[i].payload, "pieces change a message");
    require(large || whole[i].payload.size() <= largest_handshake, "a message is too large");
    read_any<Greeting, Hello, Welcome, Refusal, Heartbeat, Arrival, CallResult, Put, FailureReport, Verdict,
             Farewell>(whole[i]);
    FrameReader again;
    again.add(to_frame(whole[i].kind, whole[i].payload));
    require(again.next(largest_message)->payload == whole[i].payload,
            "a message is not written as it was read");
  }
}

void judge(ControlMessage answer, bool proven) {
  const Greeting greeting;
  const auto hello = unless_refused([&] { return read_message<Hello>(answer); });
  if (proven && hello && hello->name.rank < 1000) {
    RunIdentity claimed = hello->run;
    claimed.secret = our_run.secret;
    Hello right = *answer_greeting({Greeting::kind, to_wire(greeting)}, claimed, hello->name, hello->nonce);
    right.mark = hello->mark;
    answer.payload = to_wire(right);
  }
  const Judgement judgement = judge_hello(answer, greeting.nonce, our_run, "192.0.2.1", false);
  require_printable(judgement.sentence);
  if (judgement.admission != Judgement::Admission::accepted) {
    require(!judgement.sentence.empty(), "a refusal without a sentence");
    return;
  }
  require(hello && static_cast<std::uint32_t>(hello->name.rank) < our_run.world_size &&
              hello->run.world_size == our_run.world_size && hello->run.run_id == our_run.run_id &&
              judgement.authentic,
          "a stranger was taken up");
}

void answer(std::string_view bytes) {
  const ControlMessage greeting{Greeting::kind, std::string(bytes)};
  const auto hello = unless_refused([&] {
    return answer_greeting(greeting, our_run, {1, "host", 5}, Nonce{});
  });
  if (!hello || !*hello) return;
  const Nonce nonce = read_message<Greeting>(greeting).nonce;
  const Judgement judgement =
      judge_hello({Hello::kind, to_wire(**hello)}, nonce, our_run, "192.0.2.1", false);
  require(judgement.admission == Judgement::Admission::accepted, "the right answer was refused");
}

void welcome(std::string_view bytes) {
  const Hello hello;
  const auto read = unless_refused([&] { return from_wire<Welcome>(bytes); });
  if (read) require(!is_authentic(*read, hello, Nonce{}, our_run), "a proof was guessed");
}

void call_the_roll(std::string_view input) {
  std::vector<RollCallEntry> ranks;
  while (!input.empty() && ranks.size() < 8) {
    const std::string bytes(take_part(input));
    auto entry = unless_refused([&] { return from_wire<RollCallEntry>(bytes); });
    if (!entry) continue;
    require(to_wire(*entry) == bytes, "an answer to the roll call does not read back");
    ranks.push_back(std::move(*entry));
  }
  if (const auto sentence = first_difference(ranks)) require_printable(*sentence);
}

void launch(std::string_view input) {
  std::map<std::string, std::string> variables;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    const std::size_t sign = line.find('=');
    if (sign != std::string_view::npos) variables[std::string(line.substr(0, sign))] = line.substr(sign + 1);
  }
  const EnvironmentLookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  for (const char* launcher : {"", "torchrun", "env", "openmpi", "hydra", "slurm"}) {
    try {
      const LaunchEnvironment found = find_launch(lookup, launcher);
      require(found.rank >= 0 && found.rank < found.world_size && found.local_rank < found.local_size &&
                  found.local_size <= found.world_size,
              "impossible ranks");
      require(found.world_size == 1 || (!found.host.empty() && !found.ports.empty()), "no place to meet");
      require_printable(describe(found));
    } catch (const Error& error) {
      require_printable(error.what());
    }
  }
}

}  // namespace

void rendezvous(std::string_view input) {
  if (input.empty()) return;
  const char what = input.front();
  input.remove_prefix(1);
  const ControlMessage hello{Hello::kind, std::string(input)};
  switch (what) {
    case 'f':
      return read_frames(input);
    case 'h':
      return judge(hello, false);
    case 'p':
      return judge(hello, true);
    case 'g':
      return answer(input);
    case 'w':
      return welcome(input);
    case 'r':
      return call_the_roll(input);
    case 'l':
      return launch(input);
    default:
      return;
  }
}

}  // namespace mulligan::fuzz

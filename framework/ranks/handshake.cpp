#include "framework/ranks/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

constexpr std::size_t longest_host_name = 255;

// What both sides prove to have seen. `side` keeps one side's proof from being the other's.
Proof prove(const char* side, const Hello& hello, const Nonce& greeted_with, const std::string& secret) {
  std::string text;
  WireWriter writer(text);
  writer(std::string_view(side));
  writer(greeted_with), writer(hello.nonce);
  writer(std::string_view(hello.run.run_id)), writer(std::string_view(hello.run.address));
  writer(hello.run.restart_count), writer(hello.name.rank), writer(hello.run.world_size);
  Proof proof{};
  unsigned int size = 0;
  const unsigned char* digest =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(), &size);
  if (!digest || size != proof.size())
    throw run_error("OpenSSL computes no HMAC-SHA256; fix its installation.");
  return proof;
}

bool same(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The message, if it is one of this program. Throws config_error if it is of another version.
template <typename Message>
std::optional<Message> read_ours(const ControlMessage& message, const std::string& who) {
  ProtocolMark mark;
  try {
    WireReader reader(message.payload);
    reader(mark);
    if (message.kind != Message::kind || !mark.is_ours()) return std::nullopt;
    if (mark.version == control_version) return from_wire<Message>(message.payload);
  } catch (const Error&) {
    return std::nullopt;
  }
  throw config_error(
      "{} speaks version {} of the control protocol and this process version {}; start all ranks with the "
      "same build of mulligan.",
      who, mark.version, control_version);
}

std::string run_text(const RunIdentity& run) {
  return fmt::format("run '{}' at {}, restart {}", printable(run.run_id), printable(run.address),
                     run.restart_count);
}

}  // namespace

std::string RankName::text() const {
  return fmt::format("rank {} ({}, process {})", rank, printable(host), process);
}

RankName own_name(int rank) {
  return {rank, host_name(), static_cast<std::uint32_t>(getpid())};
}

RunIdentity identity_of(const LaunchEnvironment& environment, const std::string& secret) {
  // Not the host: a machine has several names and addresses.
  const int port = environment.ports.empty() ? 0 : environment.ports.front();
  // Each agent of torchrun counts the restarts that it has seen, and one that came later has seen fewer.
  const int restarts = environment.launcher == "torchrun" ? 0 : environment.restart_count;
  return {environment.run_id, fmt::format("port {}", port), static_cast<std::uint32_t>(restarts),
          static_cast<std::uint32_t>(environment.world_size), secret};
}

Nonce random_nonce() {
  Nonce nonce{};
  if (RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) != 1) {
    throw run_error(
        "the system gives no random bytes for the handshake between ranks; look at /dev/urandom.");
  }
  return nonce;
}

std::optional<Hello> answer_greeting(const ControlMessage& message, const RunIdentity& run,
                                     const RankName& own, const Nonce& nonce) {
  const auto greeting = read_ours<Greeting>(message, "rank 0");
  if (!greeting) return std::nullopt;
  Hello hello{{}, nonce, run, own, {}};
  hello.proof = prove("rank", hello, greeting->nonce, run.secret);
  return hello;
}

Judgement judge_hello(const ControlMessage& answer, const Nonce& greeted_with, const RunIdentity& run,
                      const std::string& from, bool on_loopback) {
  using Admission = Judgement::Admission;
  Hello unnamed;
  unnamed.name.rank = -1;
  std::optional<Hello> read;
  try {
    read = read_ours<Hello>(answer, fmt::format("a process at {}", from));
  } catch (const Error& error) {
    return {Admission::refused, false, unnamed, error.what()};
  }
  if (!read) return {Admission::stranger, false, unnamed, "it sent something else than a rank's answer"};
  const Hello& hello = *read;
  const auto rank = static_cast<std::uint32_t>(hello.name.rank);
  if (hello.name.host.size() > longest_host_name || rank >= (1U << 30)) {
    return {Admission::stranger, false, unnamed, "its name or number is too large"};
  }
  const std::string who = hello.name.text() + " at " + from;
  if (hello.run.run_id != run.run_id || hello.run.address != run.address ||
      hello.run.restart_count != run.restart_count) {
    return {Admission::other_run, false, hello,
            fmt::format("{} is of {}, and not of {}.", who, run_text(hello.run), run_text(run))};
  }
  if (run.secret.empty() && !on_loopback) {
    return {Admission::refused, false, hello,
            fmt::format("{} is on another machine than rank 0, which has no secret; give all ranks the same "
                        "MULLIGAN_SECRET or MULLIGAN_SECRET_FILE.",
                        who)};
  }
  if (!same(hello.proof, prove("rank", hello, greeted_with, run.secret))) {
    return {Admission::refused, false, hello,
            fmt::format("{} has another secret than rank 0; give all ranks the same MULLIGAN_SECRET or "
                        "MULLIGAN_SECRET_FILE.",
                        who)};
  }
  if (hello.run.world_size != run.world_size) {
    return {Admission::refused, true, hello,
            fmt::format(
                "{} was started as one of {} ranks, and rank 0 as one of {}; start all with the same number.",
                who, hello.run.world_size, run.world_size)};
  }
  if (rank >= run.world_size) {
    return {Admission::refused, true, hello,
            fmt::format("{} has no place among {} ranks, which count from 0; give each its own number.", who,
                        run.world_size)};
  }
  return {Admission::accepted, true, hello, ""};
}

Welcome welcome(const Hello& hello, const Nonce& greeted_with, const RunIdentity& run, const RankName& own) {
  return {prove("rank 0", hello, greeted_with, run.secret), own};
}

bool is_authentic(const Welcome& welcome, const Hello& hello, const Nonce& greeted_with,
                  const RunIdentity& run) {
  return same(welcome.proof, prove("rank 0", hello, greeted_with, run.secret));
}

}  // namespace mulligan

// The line between a run of test-time training and the process that checks its scores (blind_checker.h):
// messages over a socket, tensors in memory that both have mapped.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mulligan {

class BlindLink {
 public:
  // Starts `command` with the other end, which finds it by other_end(). Nothing else of this process reaches
  // it: no descriptor, and what it prints goes nowhere. Throws run_error.
  explicit BlindLink(const std::vector<std::string>& command);
  // The other end of a process that was started so; nothing: it was not.
  static std::optional<BlindLink> other_end();
  BlindLink(BlindLink&& other) noexcept;
  BlindLink(const BlindLink&) = delete;
  BlindLink& operator=(const BlindLink&) = delete;
  // Ends the line, on which the other process ends, and waits for it.
  ~BlindLink();

  // Throws run_error where the other process has ended.
  void send(const nlohmann::json& message);
  // Waits. Nothing: the other end is gone. Throws where a stop was asked for (throw_if_stopping).
  std::optional<nlohmann::json> receive();
  // Whether receive() would not wait.
  bool ready() const;
  // The shared memory, of at least so many bytes; what lay there may be lost where it grows. The end that
  // started the other says how large it is, by asking first.
  std::span<std::byte> memory(std::size_t bytes);

 private:
  BlindLink(int socket, int file) : socket_(socket), file_(file) {}
  bool read_all(void* to, std::size_t bytes);
  void unmap();

  int socket_ = -1, file_ = -1;
  pid_t process_ = -1;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace mulligan

// The line between a run of test-time training and the process that checks its scores (blind_checker.h): a
// socket and nothing else, for memory that both map would also carry what plugins have to say to each other.
#pragma once

#include <sys/types.h>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace mulligan {

// A thread that does one thing after the other for whoever asks, who waits for it.

// What a confined thread may not do itself it can hand to one that was there before (sandbox.h).
class LinkThread {
 public:
  LinkThread();
  ~LinkThread();
  LinkThread(const LinkThread&) = delete;
  LinkThread& operator=(const LinkThread&) = delete;
  // Runs `work` there. What it throws is thrown here. One caller at a time.
  void run(const std::function<void()>& work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr thrown_;
  bool ends_ = false;
  std::thread thread_;
};

class BlindLink {
 public:
  struct Message {
    nlohmann::json head;
    std::span<const std::byte> payload;  // until the next receive()
  };

  // Starts `command` with the other end, which finds it by other_end(). Nothing else of this process reaches
  // it: no descriptor, and what it prints goes nowhere. This end is used by a thread of its own, so that the
  // threads of plugins can be kept from it. Throws run_error.
  explicit BlindLink(const std::vector<std::string>& command);
  // The other end of a process that was started so; nothing: it was not.
  static std::optional<BlindLink> other_end();
  BlindLink(BlindLink&& other) noexcept;
  BlindLink(const BlindLink&) = delete;
  BlindLink& operator=(const BlindLink&) = delete;
  // Ends the line, on which the other process ends, and waits for it.
  ~BlindLink();

  // Throws run_error where the other process has ended. Waits until it has been taken, so nobody may send while
  // the other end sends a long answer.
  void send(const nlohmann::json& head, std::span<const std::byte> payload = {});
  // Waits. Nothing: the other end is gone. Throws where a stop was asked for (throw_if_stopping).
  std::optional<Message> receive();
  // Whether receive() would not wait.
  bool ready();
  // Of this end. Keep foreign threads from it.
  int descriptor() const { return socket_; }

 private:
  explicit BlindLink(int socket) : socket_(socket) {}
  template <typename Work>
  void use(const Work& work);
  void write_all(const void* from, std::size_t bytes);
  bool read_all(void* to, std::size_t bytes);

  int socket_ = -1;
  pid_t process_ = -1;
  std::unique_ptr<LinkThread> thread_;
  std::vector<std::byte>
      received_;  // kept: adapters are hundreds of MB, whose pages cost as much as their way here
};

}  // namespace mulligan

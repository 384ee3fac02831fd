#include "framework/ttt/blind_link.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"

namespace mulligan {

LinkThread::LinkThread() : thread_([this] { serve(); }) {}

LinkThread::~LinkThread() {
  {
    const std::lock_guard hold(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LinkThread::run(const std::function<void()>& work) {
  std::unique_lock hold(mutex_);
  work_ = &work;
  thrown_ = nullptr;
  changed_.notify_all();
  changed_.wait(hold, [&] { return work_ == nullptr; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void LinkThread::serve() {
  std::unique_lock hold(mutex_);
  while (true) {
    changed_.wait(hold, [&] { return ends_ || work_ != nullptr; });
    if (work_ == nullptr) return;
    try {
      (*work_)();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    work_ = nullptr;
    changed_.notify_all();
  }
}

namespace {

constexpr const char* variable = "MULLIGAN_BLIND_CHECKER";
constexpr int socket_number = 3;  // in the other process
constexpr int poll_milliseconds = 200;
constexpr std::uint64_t longest_part = std::uint64_t{1}
                                       << 40;  // of a message; no message of this program has it

Error failure(const char* what) {
  return run_error("the process that checks scores of test-time training: {} failed ({}).", what,
                   std::strerror(errno));
}

}  // namespace

BlindLink::BlindLink(const std::vector<std::string>& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw failure("socketpair");
  socket_ = ends[0];
  // Out of the way of the numbers that the other process finds them by.
  const int theirs = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
  ::close(ends[1]);
  if (theirs < 0) throw failure("fcntl");

  std::vector<std::string> environment = {std::string(variable) + "=1"};
  for (char** one = environ; *one; ++one) {
    if (!std::string_view(*one).starts_with(std::string(variable) + "=")) environment.emplace_back(*one);
  }
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {0, 1, 2})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, theirs, socket_number);
  posix_spawn_file_actions_addclosefrom_np(&actions, socket_number + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that a terminal's Ctrl-C reaches this process, which ends the other.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  const int failed = ::posix_spawn(&process_, command.front().c_str(), &actions, &attributes,
                                   pointers(command).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(theirs);
  if (failed != 0) {
    errno = failed;
    process_ = -1;
    throw failure("starting it");
  }
  thread_ = std::make_unique<LinkThread>();
}

std::optional<BlindLink> BlindLink::other_end() {
  if (!std::getenv(variable)) return std::nullopt;
  ::unsetenv(variable);
  return BlindLink(socket_number);
}

BlindLink::BlindLink(BlindLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      process_(std::exchange(other.process_, -1)),
      thread_(std::move(other.thread_)),
      received_(std::move(other.received_)) {}

BlindLink::~BlindLink() {
  thread_.reset();
  if (socket_ >= 0) ::close(socket_);
  if (process_ < 0) return;
  // Whatever it is at, nobody waits for the outcome any more.
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

template <typename Work>
void BlindLink::use(const Work& work) {
  if (!thread_) return work();
  thread_->run(work);
}

void BlindLink::send(const nlohmann::json& head, std::span<const std::byte> payload) {
  std::vector<std::uint8_t> bytes(2 * sizeof(std::uint64_t));
  nlohmann::json::to_cbor(head, bytes);
  const std::uint64_t lengths[2] = {bytes.size() - sizeof lengths, payload.size()};
  std::memcpy(bytes.data(), lengths, sizeof lengths);
  use([&] {
    write_all(bytes.data(), bytes.size());
    write_all(payload.data(), payload.size());
  });
}

void BlindLink::write_all(const void* from, std::size_t bytes) {
  for (std::size_t sent = 0; sent < bytes;) {
    const ssize_t now = ::send(socket_, static_cast<const char*>(from) + sent, bytes - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) throw run_error("the process that checks scores of test-time training has ended.");
    sent += static_cast<std::size_t>(now);
  }
}

bool BlindLink::ready() {
  bool is = false;
  use([&] {
    pollfd one{socket_, POLLIN, 0};
    is = ::poll(&one, 1, 0) > 0;
  });
  return is;
}

bool BlindLink::read_all(void* to, std::size_t bytes) {
  for (std::size_t got = 0; got < bytes;) {
    pollfd one{socket_, POLLIN, 0};
    const int waiting = ::poll(&one, 1, poll_milliseconds);
    if (waiting == 0 && process_ >= 0) throw_if_stopping();
    if (waiting <= 0) continue;
    const ssize_t now = ::read(socket_, static_cast<char*>(to) + got, bytes - got);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    got += static_cast<std::size_t>(now);
  }
  return true;
}

std::optional<BlindLink::Message> BlindLink::receive() {
  std::optional<Message> message;
  use([&] {
    std::uint64_t lengths[2] = {};
    if (!read_all(lengths, sizeof lengths)) return;
    if (lengths[0] > longest_part || lengths[1] > longest_part) return;
    std::vector<std::uint8_t> head(lengths[0]);
    if (lengths[1] > received_.size()) received_.resize(lengths[1]);
    const std::span payload = std::span(received_).first(lengths[1]);
    if (!read_all(head.data(), head.size()) || !read_all(payload.data(), payload.size())) return;
    message = Message{nlohmann::json::from_cbor(head), payload};
  });
  return message;
}

}  // namespace mulligan

#include "framework/ttt/blind_link.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
namespace {

constexpr const char* variable = "MULLIGAN_BLIND_CHECKER";
constexpr int socket_number = 3, file_number = 4;  // in the other process
constexpr int poll_milliseconds = 200;

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
  const int file = ::memfd_create("mulligan ttt", MFD_CLOEXEC);
  file_ = file < 0 ? -1 : ::fcntl(file, F_DUPFD_CLOEXEC, 10);
  if (file >= 0) ::close(file);
  if (theirs < 0 || file_ < 0) throw failure("memfd_create");

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
  posix_spawn_file_actions_adddup2(&actions, file_, file_number);
  posix_spawn_file_actions_addclosefrom_np(&actions, file_number + 1);
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
}

std::optional<BlindLink> BlindLink::other_end() {
  if (!std::getenv(variable)) return std::nullopt;
  ::unsetenv(variable);
  return BlindLink(socket_number, file_number);
}

BlindLink::BlindLink(BlindLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      file_(std::exchange(other.file_, -1)),
      process_(std::exchange(other.process_, -1)),
      mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

BlindLink::~BlindLink() {
  unmap();
  if (socket_ >= 0) ::close(socket_);
  if (file_ >= 0) ::close(file_);
  if (process_ < 0) return;
  // Whatever it is at, nobody waits for the outcome any more.
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void BlindLink::unmap() {
  if (mapped_) ::munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
}

void BlindLink::send(const nlohmann::json& message) {
  std::vector<std::uint8_t> bytes(sizeof(std::uint64_t));
  nlohmann::json::to_cbor(message, bytes);
  const std::uint64_t length = bytes.size() - sizeof length;
  std::memcpy(bytes.data(), &length, sizeof length);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) throw run_error("the process that checks scores of test-time training has ended.");
    sent += static_cast<std::size_t>(now);
  }
}

bool BlindLink::ready() const {
  pollfd one{socket_, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
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

std::optional<nlohmann::json> BlindLink::receive() {
  std::uint64_t length = 0;
  if (!read_all(&length, sizeof length)) return std::nullopt;
  if (length > (std::uint64_t{1} << 34)) return std::nullopt;  // no message of this program
  std::vector<std::uint8_t> bytes(length);
  if (!read_all(bytes.data(), bytes.size())) return std::nullopt;
  return nlohmann::json::from_cbor(bytes);
}

std::span<std::byte> BlindLink::memory(std::size_t bytes) {
  if (bytes > mapped_bytes_ || !mapped_) {
    unmap();
    mapped_bytes_ = 0;
    struct stat status {};
    if (process_ >= 0 && ::ftruncate(file_, static_cast<off_t>(bytes)) != 0) throw failure("ftruncate");
    if (::fstat(file_, &status) != 0 || static_cast<std::size_t>(status.st_size) < bytes || bytes == 0)
      throw run_error("the process that checks scores of test-time training got no memory of {} bytes.",
                      bytes);
    void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (place == MAP_FAILED) throw failure("mmap");
    mapped_ = place;
    mapped_bytes_ = bytes;
  }
  return {static_cast<std::byte*>(mapped_), bytes};
}

}  // namespace mulligan

#include "tests/stub/nccl_links.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

namespace stub {
namespace {

constexpr int kDeadline = 120'000;  // milliseconds, of one wait

std::mutex listeners_mutex;
std::map<std::string, Descriptor> listeners;

// Abstract: the name begins with a zero byte, and there is no file.
socklen_t fill(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Descriptor new_socket() {
  return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}
Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Links::Links(int rank, int size) : rank_(rank), size_(size), stop_(eventfd(0, EFD_CLOEXEC)) {
  sockets_.resize(rank == 0 ? static_cast<std::size_t>(size) : 1);
}

std::string Links::listen() {
  std::random_device random;
  const std::string name = "mulligan stub " + std::to_string(getpid()) + " " + std::to_string(random());
  sockaddr_un address;
  const socklen_t size = fill(address, name);
  Descriptor listener = new_socket();
  if (bind(listener.number(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.number(), 64) != 0) {
    return "";
  }
  const std::lock_guard lock(listeners_mutex);
  listeners.emplace(name, std::move(listener));
  return name;
}

bool Links::meet(const std::string& name) {
  const char go = 1;
  if (rank_ != 0) {
    sockaddr_un address;
    const socklen_t size = fill(address, name);
    Descriptor link = new_socket();
    if (connect(link.number(), reinterpret_cast<sockaddr*>(&address), size) != 0) return false;
    sockets_[0] = std::move(link);
    char met = 0;
    return write(sockets_[0].number(), &rank_, sizeof rank_) && read(sockets_[0].number(), &met, 1);
  }
  Descriptor listener;
  {
    const std::lock_guard lock(listeners_mutex);
    const auto found = listeners.find(name);
    if (found == listeners.end()) return false;
    listener = std::move(found->second);
    listeners.erase(found);
  }
  for (int others = 1; others < size_; ++others) {
    if (!ready(listener.number(), POLLIN)) return false;
    Descriptor link(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    int rank = 0;
    if (!read(link.number(), &rank, sizeof rank) || rank < 1 || rank >= size_) return false;
    sockets_[static_cast<std::size_t>(rank)] = std::move(link);
  }
  for (int rank = 1; rank < size_; ++rank) {
    if (!write(sockets_[static_cast<std::size_t>(rank)].number(), &go, 1)) return false;
  }
  return true;
}

bool Links::exchange(const std::string& own, std::vector<std::string>& all) {
  all.assign(static_cast<std::size_t>(size_), "");
  if (rank_ != 0) {
    if (!write_text(sockets_[0].number(), own)) return false;
    for (std::string& text : all) {
      if (!read_text(sockets_[0].number(), text)) return false;
    }
    return true;
  }
  all[0] = own;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (!read_text(sockets_[rank].number(), all[rank])) return false;
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (const std::string& text : all) {
      if (!write_text(sockets_[rank].number(), text)) return false;
    }
  }
  return true;
}

bool Links::pause(int milliseconds) const {
  pollfd waited{stop_.number(), POLLIN, 0};
  return poll(&waited, 1, milliseconds) == 0;
}

void Links::wait_for_stop() const {
  pause(kDeadline);
}

void Links::lose() const {
  for (const Descriptor& link : sockets_) shutdown(link.number(), SHUT_RDWR);
}

void Links::stop() const {
  const std::uint64_t one = 1;
  if (::write(stop_.number(), &one, sizeof one) < 0) std::abort();
}

bool Links::ready(int socket, short events) const {
  pollfd waited[]{{socket, events, 0}, {stop_.number(), POLLIN, 0}};
  return poll(waited, 2, kDeadline) > 0 && waited[1].revents == 0;
}

bool Links::write(int socket, const void* bytes, std::size_t count) const {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    if (!ready(socket, POLLOUT)) return false;
    const ssize_t done = send(socket, at, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && errno != EAGAIN && errno != EINTR) return false;
    at += done > 0 ? done : 0;
    count -= done > 0 ? static_cast<std::size_t>(done) : 0;
  }
  return true;
}

bool Links::read(int socket, void* bytes, std::size_t count) const {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    if (!ready(socket, POLLIN)) return false;
    const ssize_t done = recv(socket, at, count, MSG_DONTWAIT);
    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) return false;
    at += done > 0 ? done : 0;
    count -= done > 0 ? static_cast<std::size_t>(done) : 0;
  }
  return true;
}

bool Links::write_text(int socket, const std::string& text) const {
  const std::uint64_t size = text.size();
  return write(socket, &size, sizeof size) && write(socket, text.data(), text.size());
}

bool Links::read_text(int socket, std::string& text) const {
  std::uint64_t size = 0;
  if (!read(socket, &size, sizeof size)) return false;
  text.resize(size);
  return read(socket, text.data(), size);
}

}  // namespace stub

#include "framework/ranks/socket_loop.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <set>
#include <thread>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

std::chrono::microseconds duration(double seconds) {
  return std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

// Of an IPv4 address that came as IPv6: the IPv4 address.
asio::ip::address unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

// A process that ends closes or resets its connections, as it comes.
std::string reason_of(error_code error) {
  const bool closed = error == asio::error::eof || error == asio::error::connection_reset ||
                      error == asio::error::broken_pipe;
  if (closed) return "its connection was closed";
  return error == asio::error::timed_out ? "its machine does not answer" : error.message();
}

// The TCP connection of a Link.
class SocketLink final : public Link, public std::enable_shared_from_this<SocketLink> {
 public:
  // `unsent`: bytes that links of the loop have yet to send.
  SocketLink(tcp::socket socket, double silent_seconds, std::atomic<std::int64_t>& unsent)
      : socket_(std::move(socket)),
        resolver_(socket_.get_executor()),
        silent_seconds_(silent_seconds),
        unsent_(unsent) {}
  ~SocketLink() override { shut(); }

  // Calls begin() when there is a connection.
  void connect(const std::string& host, std::uint16_t port) {
    resolver_.async_resolve(
        host, std::to_string(port), tcp::resolver::numeric_service,
        [self = shared_from_this()](error_code error, const tcp::resolver::results_type& found) {
          if (self->shut_) return;
          if (error) return self->fail(error.message());
          asio::async_connect(self->socket_, found, [self](error_code failed, const tcp::endpoint&) {
            if (self->shut_) return;
            // If no process listens, the system may connect a socket with itself.
            error_code unknown;
            if (!failed && self->socket_.local_endpoint(unknown) == self->socket_.remote_endpoint(unknown))
              failed = asio::error::connection_refused;
            if (failed) return self->fail(failed.message());
            self->begin();
          });
        });
  }

  // The socket is connected.
  void begin() {
    last_heard = steady_seconds();
    // A child process that outlives this one would keep the connection open.
    fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    const auto milliseconds = static_cast<unsigned int>(silent_seconds_ * 1000);
    setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
    const auto own = socket_.local_endpoint(ignored);
    if (!ignored) own_address = unmapped(own.address()).to_string();
    const auto peer = socket_.remote_endpoint(ignored);
    if (!ignored) {
      peer_address = unmapped(peer.address()).to_string();
      peer_on_loopback = unmapped(peer.address()).is_loopback();
    }
    read_next();
  }

  void send(Frame frames) override {
    if (closing_ || shut_ || write_broken_) return;
    unsent_ += static_cast<std::int64_t>(frames->size());
    outgoing_.push_back(std::move(frames));
    if (outgoing_.size() == 1) write_next();
  }

  void close() override {
    closing_ = true;
    on_message = nullptr;
    on_closed = nullptr;
    if (outgoing_.empty()) shut();
  }

 private:
  void read_next() {
    socket_.async_read_some(asio::buffer(incoming_),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              if (self->closing_) return;
                              if (error) return self->fail(reason_of(error));
                              self->deliver(bytes);
                              if (!self->closing_) self->read_next();
                            });
  }

  void deliver(std::size_t bytes) {
    last_heard = steady_seconds();
    try {
      frames_.add({incoming_.data(), bytes});
      while (auto message = frames_.next(longest)) {
        // A copy: the callback may close the link, which takes callbacks away.
        if (const auto take = on_message) take(*message);
        if (closing_) return;
      }
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  void write_next() {
    asio::async_write(socket_, asio::buffer(*outgoing_.front()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (self->shut_) return;
                        if (error) return self->give_up_writing();
                        self->unsent_ -= static_cast<std::int64_t>(self->outgoing_.front()->size());
                        self->outgoing_.pop_front();
                        if (!self->outgoing_.empty()) return self->write_next();
                        if (self->closing_) self->shut();
                      });
  }

  // What the other side sent before its end has yet to be read, and reading will tell that end.
  void give_up_writing() {
    write_broken_ = true;
    for (const Frame& frames : outgoing_) unsent_ -= static_cast<std::int64_t>(frames->size());
    outgoing_.clear();
    if (closing_) shut();
  }

  void fail(const std::string& reason) {
    const auto tell = std::exchange(on_closed, nullptr);
    closing_ = true;
    shut();
    if (tell) tell(reason);
  }

  void shut() {
    if (std::exchange(shut_, true)) return;
    for (const Frame& frames : outgoing_) unsent_ -= static_cast<std::int64_t>(frames->size());
    resolver_.cancel();
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  tcp::socket socket_;
  tcp::resolver resolver_;
  double silent_seconds_;
  std::atomic<std::int64_t>& unsent_;
  std::array<char, 1 << 16> incoming_;
  FrameReader frames_;
  std::deque<Frame> outgoing_;
  bool closing_ = false, shut_ = false, write_broken_ = false;
};

// The address of a network interface, IPv4 first.
asio::ip::address address_of_interface(const std::string& name) {
  std::optional<asio::ip::address> found;
  std::set<std::string> names;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    names.insert(one->ifa_name);
    const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
    if (name != one->ifa_name || (family != AF_INET && family != AF_INET6)) continue;
    if (found && found->is_v4()) continue;
    tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), one->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found = endpoint.address();
  }
  freeifaddrs(all);
  if (found) return *found;
  throw config_error(
      "there is no network interface or address '{}' with an address here; set MULLIGAN_INTERFACE to one of "
      "{}.",
      printable(name), fmt::join(names, ", "));
}

// What to listen at: one address, or both wildcards.
std::vector<asio::ip::address> addresses_of(const std::string& name) {
  if (name.empty()) return {asio::ip::address_v6::any(), asio::ip::address_v4::any()};
  error_code no_address;
  const auto address = asio::ip::make_address(name, no_address);
  return {no_address ? address_of_interface(name) : address};
}

error_code open_at(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // The IPv6 wildcard takes IPv4 as well.
  if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

}  // namespace

struct SocketLoop::Implementation {
  explicit Implementation(double seconds) : silent_seconds(seconds) {}

  double silent_seconds;
  std::atomic<std::int64_t> unsent{0};
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::list<tcp::acceptor> acceptors;
  std::thread thread;

  std::shared_ptr<SocketLink> link_of(tcp::socket socket) {
    return std::make_shared<SocketLink>(std::move(socket), silent_seconds, unsent);
  }

  void accept_next(tcp::acceptor& acceptor, const OnLink& on_link) {
    acceptor.async_accept([this, &acceptor, on_link](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        const auto link = link_of(std::move(socket));
        link->begin();
        on_link(link);
        return accept_next(acceptor, on_link);
      }
      // Too many open files, most probably: others may close theirs.
      after(0.1, [this, &acceptor, on_link] { accept_next(acceptor, on_link); });
    });
  }

  void after(double seconds, std::function<void()> work) {
    const auto timer = std::make_shared<asio::steady_timer>(context, duration(seconds));
    timer->async_wait([timer, work = std::move(work)](error_code error) {
      if (!error) work();
    });
  }
};

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw run_error("the system refuses a thread ({}); allow this user more of them (ulimit -u).",
                    error.code().message());
  }
}

SocketLoop::SocketLoop(double silent_seconds) : implementation_(new Implementation(silent_seconds)) {
  implementation_->thread = start_thread([this] { implementation_->context.run(); });
}

SocketLoop::~SocketLoop() {
  stop();
}

void SocketLoop::stop() {
  if (!implementation_->thread.joinable()) return;
  const SteadyTime begun = std::chrono::steady_clock::now();
  while (implementation_->unsent > 0 && seconds_since(begun) < 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  implementation_->context.stop();
  implementation_->thread.join();
}

void SocketLoop::post(std::function<void()> work) {
  asio::post(implementation_->context, std::move(work));
}

void SocketLoop::after(double seconds, std::function<void()> work) {
  implementation_->after(seconds, std::move(work));
}

std::size_t SocketLoop::listen(const std::string& address, const std::vector<std::uint16_t>& ports,
                               OnLink on_link) {
  const auto addresses = addresses_of(address);
  error_code error;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (const auto& one : addresses) {
      tcp::acceptor acceptor(implementation_->context);
      error = open_at(acceptor, {one, ports[i]});
      if (error == asio::error::address_in_use) break;  // the other wildcard would be free, and wrong
      if (error) continue;
      // Only the loop's thread touches acceptors.
      const auto taken = std::make_shared<tcp::acceptor>(std::move(acceptor));
      post([this, taken, on_link = std::move(on_link)] {
        implementation_->acceptors.push_back(std::move(*taken));
        implementation_->accept_next(implementation_->acceptors.back(), on_link);
      });
      return i;
    }
  }
  throw config_error(
      "rank 0 can listen at none of the ports {} to {} ({}); end what occupies them, or choose others with "
      "MASTER_PORT or MULLIGAN_RENDEZVOUS=HOST:PORT.",
      ports.empty() ? 0 : ports.front(), ports.empty() ? 0 : ports.back(), error.message());
}

std::shared_ptr<Link> SocketLoop::connect(const std::string& host, std::uint16_t port) {
  const auto link = implementation_->link_of(tcp::socket(implementation_->context));
  link->connect(host, port);
  return link;
}

}  // namespace mulligan

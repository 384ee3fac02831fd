#include "framework/ranks/socket_link.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

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

}  // namespace

SocketLink::SocketLink(asio::ip::tcp::socket socket, double silent_seconds, std::atomic<std::int64_t>& unsent)
    : socket_(std::move(socket)), unsent_(unsent), last_heard_(SocketLoop::now()) {
  // A child process that outlives this one would keep the connection open.
  fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto milliseconds = static_cast<unsigned int>(silent_seconds * 1000);
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
  const auto own = socket_.local_endpoint(ignored);
  if (!ignored) own_address_ = unmapped(own.address()).to_string();
  const auto peer = socket_.remote_endpoint(ignored);
  if (ignored) return;
  peer_address_ = unmapped(peer.address()).to_string();
  peer_on_loopback_ = unmapped(peer.address()).is_loopback();
}

SocketLink::~SocketLink() {
  shut();
}

void SocketLink::start_reading() {
  socket_.async_read_some(asio::buffer(incoming_),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            if (self->closing_) return;
                            if (error) return self->fail(reason_of(error));
                            self->deliver(bytes);
                            if (!self->closing_) self->start_reading();
                          });
}

void SocketLink::deliver(std::size_t bytes) {
  last_heard_ = SocketLoop::now();
  try {
    frames_.add({incoming_.data(), bytes});
    while (auto message = frames_.next()) {
      // A copy: the callback may close the link, which takes callbacks away.
      if (const auto take = on_message) take(*message);
      if (closing_) return;
    }
  } catch (const Error& error) {
    fail(error.what());
  }
}

void SocketLink::send(Frames frames) {
  if (closing_ || shut_ || write_broken_) return;
  unsent_ += static_cast<std::int64_t>(frames->size());
  outgoing_.push_back(std::move(frames));
  if (outgoing_.size() == 1) write_next();
}

void SocketLink::write_next() {
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
void SocketLink::give_up_writing() {
  write_broken_ = true;
  for (const Frames& frames : outgoing_) unsent_ -= static_cast<std::int64_t>(frames->size());
  outgoing_.clear();
  if (closing_) shut();
}

void SocketLink::close() {
  closing_ = true;
  on_message = nullptr;
  on_closed = nullptr;
  if (outgoing_.empty()) shut();
}

void SocketLink::fail(const std::string& reason) {
  const auto tell = std::exchange(on_closed, nullptr);
  closing_ = true;
  shut();
  if (tell) tell(reason);
}

void SocketLink::shut() {
  if (std::exchange(shut_, true)) return;
  for (const Frames& frames : outgoing_) unsent_ -= static_cast<std::int64_t>(frames->size());
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace mulligan

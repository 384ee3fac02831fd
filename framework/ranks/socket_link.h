// The TCP connection of a Link. Only socket_loop.cpp and socket_link.cpp include it, the only users of Boost.Asio.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <deque>

#include "framework/ranks/socket_loop.h"

namespace mulligan {

class SocketLink final : public Link, public std::enable_shared_from_this<SocketLink> {
 public:
  // `unsent`: bytes that links of the loop have yet to send.
  SocketLink(boost::asio::ip::tcp::socket socket, double silent_seconds, std::atomic<std::int64_t>& unsent);
  ~SocketLink() override;
  void start_reading();

  void send(Frames frames) override;
  void allow_large_messages() override { frames_.allow_large_messages(); }
  void close() override;
  const std::string& peer_address() const override { return peer_address_; }
  const std::string& own_address() const override { return own_address_; }
  bool peer_on_loopback() const override { return peer_on_loopback_; }
  double last_heard() const override { return last_heard_; }

 private:
  void deliver(std::size_t bytes);
  void write_next();
  void give_up_writing();
  void fail(const std::string& reason);
  void shut();

  boost::asio::ip::tcp::socket socket_;
  std::atomic<std::int64_t>& unsent_;
  std::array<char, 1 << 16> incoming_;
  FrameReader frames_;
  std::deque<Frames> outgoing_;
  std::string peer_address_ = "an unknown address", own_address_;
  bool peer_on_loopback_ = false;
  bool closing_ = false, shut_ = false, write_broken_ = false;
  double last_heard_;
};

}  // namespace mulligan

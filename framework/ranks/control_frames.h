// The format of messages between ranks: a frame of three parts, the length of its payload (4 bytes), the kind of message (1) and the
// payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mulligan {

inline constexpr std::size_t frame_header_bytes = 5;
inline constexpr std::size_t largest_message = std::size_t{1} << 28;    // bytes of a payload
inline constexpr std::size_t largest_handshake = std::size_t{1} << 12;  // before the handshake is done

struct ControlMessage {
  std::uint8_t kind = 0;
  std::string payload;
};

// Throws run_error if the payload is larger than largest_message.
std::string to_frame(std::uint8_t kind, std::string_view payload);

// Finds messages in bytes that come in pieces of any size.
class FrameReader {
 public:
  // Adds bytes.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message, or nothing yet. Throws run_error if one is larger than allowed (known from its length, before its
  // bytes are there). After that the reader must not be used.
  std::optional<ControlMessage> next();
  // Until this is called a payload has at most largest_handshake bytes.
  void allow_large_messages() { most_ = largest_message; }

 private:
  std::string bytes_;
  std::size_t read_ = 0;  // of bytes_
  std::size_t most_ = largest_handshake;
};

}  // namespace mulligan

// The format of messages between ranks: a message is cut into frames. A frame has four parts: the length of its payload (4 bytes),
// the kind of message (1), a byte that is 1 if the message continues in the next frame, and the payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mulligan {

inline constexpr std::size_t frame_header_bytes = 6;
inline constexpr std::size_t largest_frame = std::size_t{1} << 20;    // of a payload
inline constexpr std::size_t largest_message = std::size_t{1} << 28;  // of all its frames
inline constexpr std::size_t largest_handshake = std::size_t{1}
                                                 << 12;  // of a frame before the handshake is done

struct ControlMessage {
  std::uint8_t kind = 0;
  std::string payload;
};

// The frames of one message. Throws run_error if it is larger than largest_message.
std::string to_frames(std::uint8_t kind, std::string_view payload);

// Assembles messages from bytes that come in pieces of any size.
class FrameReader {
 public:
  // Adds bytes.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message, or nothing yet. Throws run_error if a frame is larger than allowed (known from its length, before its
  // bytes are there) or does not continue the message that was begun. After that the reader must not be used.
  std::optional<ControlMessage> next();
  // Until this is called each frame is a message of at most largest_handshake bytes.
  void allow_large_messages() { large_ = true; }

 private:
  std::optional<ControlMessage> next_frame(bool& more);
  std::string bytes_;
  std::size_t read_ = 0;  // of bytes_
  std::optional<ControlMessage> begun_;
  bool large_ = false;
};

}  // namespace mulligan

// What travels between ranks: messages cut into frames. A frame is the length of its payload (4 bytes), the
// kind of message (1), 1 where the message goes on in the next frame and 0 in its last (1), and the payload.
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

// The frames of one message. Throws run_error where it is larger than largest_message.
std::string to_frames(std::uint8_t kind, std::string_view payload);

// Puts messages together from bytes that come in any pieces.
class FrameReader {
 public:
  // Takes up more bytes.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message, or nothing yet. Throws run_error where a frame is larger than allowed (seen from
  // its length, before its bytes are there) or does not continue the message that was begun; the reader is of
  // no use then.
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

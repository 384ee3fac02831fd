#include "framework/ranks/control_frames.h"

#include <cstring>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

std::string to_frames(std::uint8_t kind, std::string_view payload) {
  if (payload.size() > largest_message) {
    throw run_error("a message of {} bytes between ranks is larger than {}; send it in parts.",
                    payload.size(), largest_message);
  }
  std::string bytes;
  bytes.reserve(payload.size() + (payload.size() / largest_frame + 1) * frame_header_bytes);
  do {
    const std::string_view part = payload.substr(0, largest_frame);
    payload.remove_prefix(part.size());
    const auto length = static_cast<std::uint32_t>(part.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += static_cast<char>(kind);
    bytes += static_cast<char>(payload.empty() ? 0 : 1);
    bytes += part;
  } while (!payload.empty());
  return bytes;
}

std::optional<ControlMessage> FrameReader::next_frame(bool& more) {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() < frame_header_bytes) return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, rest.data(), sizeof length);
  const auto kind = static_cast<std::uint8_t>(rest[4]);
  const auto flag = static_cast<std::uint8_t>(rest[5]);
  const std::size_t most = large_ ? largest_frame : largest_handshake;
  if (length > most) throw run_error("a frame says that it has {} bytes, and {} is the most.", length, most);
  if (flag > (large_ ? 1 : 0)) throw run_error("a frame has the flag {}, which there is not.", flag);
  if (rest.size() < frame_header_bytes + length) return std::nullopt;
  more = flag == 1;
  ControlMessage frame{kind, std::string(rest.substr(frame_header_bytes, length))};
  read_ += frame_header_bytes + length;
  return frame;
}

std::optional<ControlMessage> FrameReader::next() {
  bool more = true;
  while (more) {
    auto frame = next_frame(more);
    if (!frame) {
      bytes_.erase(0, read_);
      read_ = 0;
      return std::nullopt;
    }
    if (!begun_) {
      begun_ = std::move(frame);
      continue;
    }
    if (frame->kind != begun_->kind) {
      throw run_error("a message of kind {} goes on as one of kind {}.", begun_->kind, frame->kind);
    }
    if (begun_->payload.size() + frame->payload.size() > largest_message) {
      throw run_error("a message has more than {} bytes.", largest_message);
    }
    begun_->payload += frame->payload;
  }
  return std::exchange(begun_, std::nullopt);
}

}  // namespace mulligan

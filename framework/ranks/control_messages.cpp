#include "framework/ranks/control_messages.h"

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {

std::string number_list(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string to_frame(std::uint8_t kind, std::string_view payload) {
  if (payload.size() > largest_message) {
    throw run_error("a message of {} bytes between ranks is larger than {}; send it in parts.",
                    payload.size(), largest_message);
  }
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::string bytes;
  bytes.reserve(frame_header_bytes + payload.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += static_cast<char>(kind);
  return bytes += payload;
}

std::optional<ControlMessage> FrameReader::next(std::size_t longest) {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() >= frame_header_bytes) {
    std::uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    if (length > longest)
      throw run_error("a message says that it has {} bytes, and {} is the most.", length, longest);
    if (rest.size() >= frame_header_bytes + length) {
      read_ += frame_header_bytes + length;
      return ControlMessage{static_cast<std::uint8_t>(rest[sizeof length]),
                            std::string(rest.substr(frame_header_bytes, length))};
    }
  }
  bytes_.erase(0, read_);
  read_ = 0;
  if (bytes_.empty()) bytes_.shrink_to_fit();  // it may have held a large message
  return std::nullopt;
}

}  // namespace mulligan

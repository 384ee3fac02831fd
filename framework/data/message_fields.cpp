#include "framework/data/message_fields.h"

namespace mulligan {

bool MessageFields::next() {
  if (rest_.empty() || broken_) return false;
  broken_ = !read();
  return !broken_;
}

bool MessageFields::read() {
  const std::optional<std::uint64_t> key = integer();
  if (!key) return false;
  number = *key >> 3;
  bytes = {};
  switch (*key & 7u) {
    case 0: {
      const auto read = integer();
      value = read.value_or(0);
      return read.has_value();
    }
    case 1:
      return take(8);
    case 2: {
      const auto length = integer();
      return length && take(*length);
    }
    case 5:
      return take(4);
    default:
      return false;
  }
}

std::optional<std::uint64_t> MessageFields::integer() {
  std::uint64_t read = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    read |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
    if (byte < 0x80) return read;
  }
  return std::nullopt;
}

bool MessageFields::take(std::uint64_t length) {
  if (length > rest_.size()) return false;
  bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

}  // namespace mulligan

// The fields of a serialised protocol buffer message, such as a SentencePiece model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mulligan {

// Goes over the fields of one message, one after another. Bytes that are no message end it early.
class MessageFields {
 public:
  explicit MessageFields(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number = 0;  // of the current field
  std::uint64_t value = 0;   // of an integer
  std::string_view bytes;    // of a string or an embedded message

  // Moves to the next field; false at the end or where the bytes are no message.
  bool next();
  // After next() has returned false: whether that was the end. Groups, which no model has, count
  // as no message.
  bool ended() const { return rest_.empty() && !broken_; }

 private:
  bool read();
  std::optional<std::uint64_t> integer();
  bool take(std::uint64_t length);

  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace mulligan

// Messages as bytes. A message lists its fields once, in `auto fields() { return std::tie(...); }`.
// Numbers are little-endian; a text or a list follows its length.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

static_assert(std::endian::native == std::endian::little, "messages are written as memory has them");

// Appends to `bytes`.
class WireWriter {
 public:
  explicit WireWriter(std::string& bytes) : bytes_(bytes) {}

  template <typename Number>
  requires(std::is_arithmetic_v<Number> || std::is_enum_v<Number>) void operator()(const Number& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <std::size_t n>
  void operator()(const std::array<unsigned char, n>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), n);
  }
  void operator()(std::string_view text) {
    (*this)(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  template <typename Item>
  void operator()(const std::vector<Item>& items) {
    (*this)(static_cast<std::uint64_t>(items.size()));
    for (const Item& item : items) (*this)(item);
  }
  template <typename Message>
  requires requires(Message& message) { message.fields(); }
  void operator()(const Message& message) {
    std::apply([this](const auto&... field) { ((*this)(field), ...); },
               const_cast<Message&>(message).fields());
  }

 private:
  std::string& bytes_;
};

// A length is allocated only if that many bytes are known to be there. Throws run_error if bytes are missing.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  requires(std::is_arithmetic_v<Number> || std::is_enum_v<Number>) void operator()(Number& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void operator()(bool& value) { value = take(1).front() != 0; }
  template <std::size_t n>
  void operator()(std::array<unsigned char, n>& value) {
    std::memcpy(value.data(), take(n).data(), n);
  }
  void operator()(std::string& text) {
    std::uint64_t size = 0;
    (*this)(size);
    text = take(size);
  }
  // Each item has at least the bytes of a length.
  template <typename Item>
  void operator()(std::vector<Item>& items) {
    std::uint64_t count = 0;
    (*this)(count);
    if (count > rest_.size() / sizeof count) throw run_error("a message says that it has {} texts.", count);
    items.resize(static_cast<std::size_t>(count));
    for (Item& item : items) (*this)(item);
  }
  template <typename Message>
  requires requires(Message& message) { message.fields(); }
  void operator()(Message& message) {
    std::apply([this](auto&... field) { ((*this)(field), ...); }, message.fields());
  }
  void require_end() const {
    if (!rest_.empty()) throw run_error("a message has {} bytes too many.", rest_.size());
  }

 private:
  std::string_view take(std::uint64_t bytes) {
    if (bytes > rest_.size())
      throw run_error("a message of {} bytes more was cut off after {}.", bytes, rest_.size());
    const std::string_view part = rest_.substr(0, static_cast<std::size_t>(bytes));
    rest_.remove_prefix(part.size());
    return part;
  }
  std::string_view rest_;
};

template <typename Message>
std::string to_wire(const Message& message) {
  std::string bytes;
  WireWriter writer(bytes);
  writer(message);
  return bytes;
}

// Throws run_error if the bytes are no such message, or more than one.
template <typename Message>
Message from_wire(std::string_view bytes) {
  WireReader reader(bytes);
  Message message;
  reader(message);
  reader.require_end();
  return message;
}

}  // namespace mulligan

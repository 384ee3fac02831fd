#include "framework/data/character_map.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "framework/data/message_fields.h"

namespace mulligan {
namespace {

// A unit of the map's double-array trie (the format of the Darts-clone library), 32 bits, little-endian.
struct Unit {
  std::uint32_t bits;
  bool is_value() const { return bits >> 31 != 0; }
  bool has_value() const { return (bits >> 8 & 1u) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffffu; }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & 1u << 9) >> 6); }
};

// The map is the trie's length in bytes (32 bits), the trie, and the texts that its values point into, each
// ended by a zero byte.
bool is_sound(std::string_view map) {
  std::uint32_t trie_bytes = 0;
  if (map.size() < sizeof(trie_bytes)) return false;
  std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
  map.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes >= map.size() || trie_bytes == 0 || trie_bytes % sizeof(Unit) != 0) return false;
  const std::string_view texts = map.substr(trie_bytes);
  if (texts.back() != '\0') return false;
  const std::size_t count = trie_bytes / sizeof(Unit);
  const auto unit = [&](std::size_t place) {
    Unit read;
    std::memcpy(&read, map.data() + place * sizeof(Unit), sizeof(Unit));
    return read;
  };
  for (std::size_t place = 0; place < count; ++place) {
    const Unit here = unit(place);
    if (here.is_value()) {
      if (here.value() >= texts.size()) return false;
      continue;
    }
    // From here the next byte of a text leads to one of 256 places.
    const std::size_t next = place ^ here.offset();
    if ((next | 0xFFu) >= count) return false;
    if (here.has_value() && unit(next).value() >= texts.size()) return false;
  }
  return true;
}

}  // namespace

std::string character_map_problem(std::string_view model) {
  constexpr std::uint64_t kNormalizerSpec = 3, kDenormalizerSpec = 5, kCharacterMap = 2;
  MessageFields part(model);
  while (part.next()) {
    if (part.number != kNormalizerSpec && part.number != kDenormalizerSpec) continue;
    MessageFields field(part.bytes);
    while (field.next()) {
      if (field.number == kCharacterMap && !field.bytes.empty() && !is_sound(field.bytes))
        return "its character map points beyond its end";
    }
    if (!field.ended()) return "its normaliser cannot be read";
  }
  // What stands behind a field that is not understood would not be checked.
  return part.ended() ? "" : "it is cut off or not one";
}

}  // namespace mulligan

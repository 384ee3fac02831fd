// The words of enumerations in a configuration.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mulligan {

// Specialised after each enumeration: an array of words in the order of the enumerators.
template <typename E>
inline constexpr auto config_words = nullptr;

template <typename E>
constexpr const char* word_of(E value) {
  return config_words<E>[static_cast<std::size_t>(value)];
}

template <typename E>
std::optional<E> of_word(std::string_view word) {
  for (std::size_t i = 0; i < config_words<E>.size(); ++i) {
    if (word == config_words<E>[i]) return static_cast<E>(i);
  }
  return {};
}

// Leaves `value` as it is where no enumerator has this word.
template <typename E, std::size_t count>
void set_by_word(E& value, std::string_view word, const std::array<const char*, count>& words) {
  for (std::size_t i = 0; i < count; ++i) {
    if (word == words[i]) value = static_cast<E>(i);
  }
}

}  // namespace mulligan

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

}  // namespace mulligan

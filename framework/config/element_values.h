// Reads the keys of an element of the model, by their names below [model].
#pragma once

#include <string>
#include <string_view>

#include "framework/config/model_config.h"

namespace mulligan {

// Leaves `value` as it is where the key is not set.
template <typename T>
void read_element(const ModelConfig& model, std::string_view name, T& value) {
  if (const auto set = model.elements.find(name); set != model.elements.end()) value = set->second.as<T>();
}
// An enumeration by its words.
template <typename E>
void read_element(const ModelConfig& model, std::string_view name, E& value, const auto& words) {
  std::string word;
  read_element(model, name, word);
  set_by_word(value, word, words);
}

}  // namespace mulligan

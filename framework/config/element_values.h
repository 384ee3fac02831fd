// Reads the keys of an element of the model, by their names below [model].
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "framework/config/model_config.h"

namespace mulligan {

// Leaves `value` as it is where the key is not set.
inline void read_element(const ModelConfig& model, std::string_view name, bool& value) {
  if (const ConfigValue* set = model.elements.find(name)) value = set->boolean();
}
inline void read_element(const ModelConfig& model, std::string_view name, std::int64_t& value) {
  if (const ConfigValue* set = model.elements.find(name)) value = set->integer();
}
inline void read_element(const ModelConfig& model, std::string_view name, double& value) {
  if (const ConfigValue* set = model.elements.find(name)) value = set->real();
}
// An enumeration by its words, in its order.
template <typename E>
void read_element(const ModelConfig& model, std::string_view name, E& value,
                  std::initializer_list<std::string_view> words) {
  const ConfigValue* set = model.elements.find(name);
  if (set == nullptr) return;
  int place = 0;
  for (const std::string_view word : words) {
    if (word == set->string()) value = static_cast<E>(place);
    ++place;
  }
}

}  // namespace mulligan

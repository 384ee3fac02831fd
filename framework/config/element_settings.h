// Values of the keys that elements of the model declare for themselves (framework/config/model_elements.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "framework/config/value.h"

namespace mulligan {

// By name below [model]: "smear_gate.window". What is absent has its default, which leaves an element off.
class ElementSettings {
 public:
  const ConfigValue* find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  // Those of one element alone.
  ElementSettings of(const std::string& element) const {
    ElementSettings kept;
    for (const auto& [name, value] : values_) {
      if (name.starts_with(element + ".")) kept.set(name, value);
    }
    return kept;
  }
  void set(std::string name, ConfigValue value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }

 private:
  std::map<std::string, ConfigValue, std::less<>> values_;
};

}  // namespace mulligan

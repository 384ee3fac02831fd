#include "framework/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan {

const Setting* Settings::find(std::string_view name) const {
  const auto it = std::ranges::find(all_, name, &Setting::name);
  return it == all_.end() ? nullptr : &*it;
}

const Setting& Settings::at(std::string_view name) const {
  const Setting* setting = find(name);
  if (setting == nullptr) throw std::logic_error("undeclared configuration key: " + full_name(name));
  return *setting;
}

std::string Settings::full_name(std::string_view name) const {
  return table_.empty() ? std::string(name) : fmt::format("{}.{}", table_, name);
}

std::string Settings::where(std::string_view name) const {
  return fmt::format("'{}' ({})", full_name(name), at(name).origin.text());
}

}  // namespace mulligan

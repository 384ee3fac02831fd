// The configurations that the program carries in itself, so that `extends = "mulligan:quickstart"` works
// wherever the file lies and however mulligan was installed.
#pragma once

#include <span>
#include <string_view>

namespace mulligan {

struct ShippedConfig {
  std::string_view name;  // "quickstart": configs/quickstart.toml
  std::string_view text;
};

// What `extends` begins with in place of a path.
inline constexpr std::string_view shipped_prefix = "mulligan:";

std::span<const ShippedConfig> shipped_configs();

}  // namespace mulligan

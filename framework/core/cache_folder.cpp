#include "framework/core/cache_folder.h"

#include <cstdlib>

namespace mulligan {

std::filesystem::path cache_folder(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "mulligan" / name;
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "mulligan" / name;
  return {};
}

}  // namespace mulligan

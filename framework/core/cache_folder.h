// Where users' caches live.
#pragma once

#include <filesystem>
#include <string>

namespace mulligan {

// $XDG_CACHE_HOME/mulligan/NAME, else ~/.cache/mulligan/NAME; empty where neither variable is set. It need not exist.
std::filesystem::path cache_folder(const std::string& name);

}  // namespace mulligan

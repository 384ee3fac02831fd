// Shared by the data tests: scratch folders and checked refusals.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/shard.h"
#include "tests/support/sentence.h"

namespace mulligan {

// An empty folder of that name in the test's temporary directory.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("mulligan_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Shards of these tokens in a fresh folder of that name.
inline std::vector<std::filesystem::path> fresh_shards(
    const std::string& name, const std::vector<std::vector<std::uint16_t>>& shards) {
  const std::filesystem::path folder = fresh_folder(name);
  std::vector<std::filesystem::path> files;
  for (const std::vector<std::uint16_t>& tokens : shards) {
    files.push_back(folder / fmt::format("fineweb_train_{:06d}.bin", files.size()));
    write_shard(files.back(), tokens);
  }
  return files;
}

}  // namespace mulligan

// Shared by the data tests: scratch folders and checked refusals.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/sentence.h"

namespace mulligan {

// An empty folder of that name in the test's temporary directory.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("mulligan_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace mulligan

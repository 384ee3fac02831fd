// Shared by the data tests: scratch folders and checked refusals.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "framework/core/error.h"

namespace mulligan {

// An empty folder of that name in the test's temporary directory.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("mulligan_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// The message of the Error that `action` throws; fails the test when it throws none or one of another code.
inline std::string message_of(ExitCode code, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace mulligan

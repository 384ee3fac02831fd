// Shared by the configuration tests: the sentence and exit code of an expected error, the
// small valid configuration, and a folder for files.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/core/error.h"
#include "tests/support/small_config.h"

namespace mulligan {

// The message of the config_error that `action` throws; a test failure when it throws nothing or has
// another exit code.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_configuration);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

// A folder for one test's files, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / (std::string("mulligan_") + info->test_suite_name() +
                                                      "_" + info->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  // Writes `text` to `name` inside and returns the whole path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace mulligan

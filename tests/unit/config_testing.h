// Shared by the configuration tests.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan {

using test_support::ScratchFolder;

// The sentence of the config_error that `action` throws; a test failure when it throws none.
template <typename Action>
std::string error_of(Action action) {
  return sentence_of(ExitCode::bad_configuration, action);
}

// The words of `text`.
inline std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

inline double number(const ConfigNode& keys, const std::string& name) {
  ConfigValue value;
  const ConfigNode* node = keys.find(name);
  EXPECT_TRUE(node && convert(node->value, ValueType::real, value)) << "no number '" << name << "'";
  return value.as<double>();
}

// The sections of the plugin tables, in order.
inline std::vector<std::string> plugin_sections(const LoadedConfig& loaded) {
  std::vector<std::string> sections;
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) sections.push_back(ref.table->section);
  return sections;
}

}  // namespace mulligan

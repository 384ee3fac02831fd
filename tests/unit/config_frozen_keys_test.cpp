// The set of core keys is frozen: adding, renaming or removing one must be a deliberate act, seen in review,
// and the reference must follow.
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/config/core_schema.h"
#include "framework/core/file.h"

namespace mulligan::config_frozen_keys_test {
namespace {

TEST(ConfigFrozenKeys, TheCoreKeysAreThoseOfTheFrozenList) {
  std::string keys;
  for (const std::string& name : core_key_names()) keys += name + "\n";
  EXPECT_EQ(keys, read_file(MULLIGAN_SOURCE_DIR "/tests/unit/frozen_keys.txt"))
      << "When the change is meant, copy the keys of the left side into tests/unit/frozen_keys.txt.";
}

TEST(ConfigFrozenKeys, TheReferenceIsThatOfTheDeclarations) {
  EXPECT_EQ(write_reference(), read_file(MULLIGAN_SOURCE_DIR "/docs/configuration.md"))
      << "When the change is meant, write it anew: mulligan config docs > docs/configuration.md";
}

TEST(ConfigFrozenKeys, EveryKeyHasAHelpText) {
  for (const KeySection& section : core_sections()) {
    for (const KeySpec& key : section.keys)
      EXPECT_FALSE(key.help.empty()) << section.header << " " << key.name;
  }
}

}  // namespace
}  // namespace mulligan::config_frozen_keys_test

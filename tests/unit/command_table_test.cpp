#include "launch/command_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mulligan::command_table_test {
namespace {

TEST(CommandTable, NamesEachCommandOnce) {
  std::set<std::string> names;
  for (const CommandEntry& entry : command_table())
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(CommandTable, ACommandOfAPartThatWasLeftOutIsSaidToBe) {
  for (const CommandEntry& entry : command_table()) {
    const std::string why = why_no_command(entry.name);
    if (entry.part == ProgramPart::core) {
      EXPECT_EQ(why, "") << entry.name;
    } else {
      const char* option = entry.part == ProgramPart::lab     ? "MULLIGAN_LAB=OFF"
                           : entry.part == ProgramPart::tools ? "MULLIGAN_TOOLS=OFF"
                                                              : "MULLIGAN_STUDIES=OFF";
      EXPECT_NE(why.find(option), std::string::npos) << entry.name << why;
    }
  }
}

TEST(CommandTable, OtherWordsLeadToCommandsThatExist) {
  std::set<std::string> names;
  for (const CommandEntry& entry : command_table()) names.insert(entry.name);
  for (const char* word : {"compare", "kernels", "man", "attention", "calibrate", "ensemble", "merge"}) {
    EXPECT_FALSE(names.contains(word)) << word;
    const std::string why = why_no_command(word), before = "; it is `mulligan ";
    ASSERT_EQ(why.substr(0, before.size()), before) << word;
    const std::string rest = why.substr(before.size());
    EXPECT_TRUE(names.contains(rest.substr(0, rest.find(' ')))) << why;
  }
  EXPECT_EQ(why_no_command("frobnicate"), "");
}

}  // namespace
}  // namespace mulligan::command_table_test

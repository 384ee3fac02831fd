// What plugins say reaches the log of the run, and cannot be taken for a line of the program's own.
#include "framework/run/run_plugins.h"

#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::plugin_lines_test {
namespace {

TEST(PluginLines, ReachTheLogAsWhatTheyAre) {
  const test_support::ScratchFolder folder;
  const auto say = [](int level, const char* text) { plugin_host_services()->log(level, text); };
  std::string heard;
  set_plugin_log_sink(
      [&](int level, std::string_view line) { heard += std::to_string(level) + std::string(line); });
  {
    RunLog log({nullptr, true}, folder.path() / "log.txt");
    const PluginLines lines(log);
    say(0, "how");
    say(1, "what");
    say(2, "attention is slow\nval_bpb 0.1");
  }
  say(2, "!");
  set_plugin_log_sink(nullptr);
  EXPECT_EQ(read_file(folder.path() / "log.txt"),
            "plugin: what\nwarning: plugin: attention is slow\\nval_bpb 0.1\n");
  EXPECT_EQ(heard, "0how1what2attention is slow\nval_bpb 0.12!");
}

}  // namespace
}  // namespace mulligan::plugin_lines_test

#include "launch/command_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace mulligan {
namespace {

constexpr CommandEntry table[] = {
#define MULLIGAN_COMMAND(name, group, part) {#name, CommandGroup::group, ProgramPart::part},
#include "launch/command_list.inc"
#undef MULLIGAN_COMMAND
};

// What people try first, and what does it.
struct OtherWord {
  std::string_view word;
  const char* command;
};
constexpr OtherWord other_words[] = {
    {"compare", "report RUN RUN"},    {"kernels", "plugins kernels"},     {"man", "completion man"},
    {"attention", "probe attention"}, {"calibrate", "probe calibration"}, {"ensemble", "probe ensemble"},
    {"merge", "vectors merge"},
};

}  // namespace

std::span<const CommandEntry> command_table() {
  return table;
}

const char* group_heading(CommandGroup group) {
  constexpr const char* headings[] = {"Run (data, training, scores)", "Look (configurations, plugins, runs)",
                                      "Lab (experiments on trained models)"};
  return headings[static_cast<int>(group)];
}

std::string why_no_command(const std::string& word) {
  for (const OtherWord& other : other_words) {
    if (other.word == word) return fmt::format("; it is `mulligan {}`.", other.command);
  }
  const auto* found = std::ranges::find_if(
      table, [&](const CommandEntry& entry) { return std::string_view(entry.name) == word; });
  if (found == std::end(table) || found->part == ProgramPart::core) return "";
  static constexpr const char* words[][2] = {{"tools", "TOOLS"}, {"studies", "STUDIES"}, {"lab", "LAB"}};
  const auto& [part, option] = words[static_cast<int>(found->part) - static_cast<int>(ProgramPart::tools)];
  return fmt::format(
      "; it is of the {}, without which this program was built (MULLIGAN_{}=OFF): configure it with `cmake --preset release` and build again.",
      part, option);
}

}  // namespace mulligan

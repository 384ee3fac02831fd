#include "launch/program_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "launch/commands/commands.h"

namespace mulligan {
namespace {

// The functions of parts that are left out of this build are not there.
#define MULLIGAN_OF_core(add) add
#ifdef MULLIGAN_TOOLS
#define MULLIGAN_OF_tools(add) add
#else
#define MULLIGAN_OF_tools(add) nullptr
#endif
#ifdef MULLIGAN_STUDIES
#define MULLIGAN_OF_studies(add) add
#else
#define MULLIGAN_OF_studies(add) nullptr
#endif
#ifdef MULLIGAN_LAB
#define MULLIGAN_OF_lab(add) add
#else
#define MULLIGAN_OF_lab(add) nullptr
#endif

constexpr const char* heading_of_run = "Run (data, training, scores)";
constexpr const char* heading_of_look = "Look (configurations, plugins, runs)";
constexpr const char* heading_of_lab = "Lab (experiments on trained models)";

constexpr CommandEntry table[] = {
#define MULLIGAN_COMMAND(name, group, part) \
  {#name, heading_of_##group, #part, MULLIGAN_OF_##part(add_##name##_command)},
#include "launch/command_list.inc"
#undef MULLIGAN_COMMAND
};

ProgramParts make_parts() {
  ProgramParts parts;
#ifdef MULLIGAN_TOOLS
  add_tools(parts);
#endif
#ifdef MULLIGAN_LAB
  add_lab(parts);
#endif
  return parts;
}

}  // namespace

std::span<const CommandEntry> command_table() {
  return table;
}

std::string why_no_command(const std::string& word) {
  const auto* found = std::ranges::find(table, word, &CommandEntry::name);
  if (found == std::end(table) || found->add != nullptr) return "";
  std::string option = found->part;
  for (char& letter : option) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return fmt::format(
      "; it is of the {}, without which this program was built (MULLIGAN_{}=OFF): configure it with `cmake --preset release` and build again.",
      found->part, option);
}

std::vector<MakeObserver> ProgramParts::training_observers(bool force) const {
  std::vector<MakeObserver> made;
  for (const auto& observer : observers) made.push_back([&observer, force] { return observer(force); });
  return made;
}

const ProgramParts& program_parts() {
  static const ProgramParts parts = make_parts();
  return parts;
}

void refresh_report(const std::filesystem::path& run, const ConsoleOptions& console) {
  if (!program_parts().write_report || run.empty() || !std::filesystem::exists(RunFiles{run}.metrics()))
    return;
  try {
    program_parts().write_report(run);
    if (!console.quiet) {
      fmt::print("report                       {}\n", printable(RunFiles{run}.report().string()));
    }
  } catch (const Error& error) {
    print_warning(fmt::format("the report was not written: {}", printable(error.what())));
  }
}

}  // namespace mulligan

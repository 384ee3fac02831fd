#include "launch/program_parts.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "launch/commands/commands.h"

namespace mulligan {
namespace {

// What the lines of command_list.inc come to: those of parts that are left out of this build, to nothing.
#define MULLIGAN_OF_core(command) command
#ifdef MULLIGAN_TOOLS
#define MULLIGAN_OF_tools(command) command
#else
#define MULLIGAN_OF_tools(command)
#endif
#ifdef MULLIGAN_STUDIES
#define MULLIGAN_OF_studies(command) command
#else
#define MULLIGAN_OF_studies(command)
#endif
#ifdef MULLIGAN_LAB
#define MULLIGAN_OF_lab(command) command
#else
#define MULLIGAN_OF_lab(command)
#endif

ProgramParts make_parts() {
  ProgramParts parts;
#define MULLIGAN_COMMAND(name, group, part) MULLIGAN_OF_##part(parts.commands[#name] = add_##name##_command;)
#include "launch/command_list.inc"
#undef MULLIGAN_COMMAND
#ifdef MULLIGAN_TOOLS
  add_tools(parts);
#endif
#ifdef MULLIGAN_LAB
  add_lab(parts);
#endif
  return parts;
}

}  // namespace

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

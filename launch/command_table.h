// All commands of mulligan by their names: in which group and order the help has them, and which part of the program
// brings them. A build without the tools, the studies or the lab still knows what it lacks.
#pragma once

#include <span>
#include <string>

namespace mulligan {

enum class CommandGroup { run, look, lab };

// All but the core may be left out of a build. `studies`: what tools/ has for many runs.
enum class ProgramPart { core, tools, studies, lab };  // in the order in which they are added

struct CommandEntry {
  const char* name;
  CommandGroup group;
  ProgramPart part;
};

// In the order of the help.
std::span<const CommandEntry> command_table();

// The heading above the commands of a group.
const char* group_heading(CommandGroup group);

// For a word that is not a command of this build, why: "; it is `mulligan report RUN RUN`." for another name of a command,
// or the part that was left out. Empty where nothing is known of the word.
std::string why_no_command(const std::string& word);

}  // namespace mulligan

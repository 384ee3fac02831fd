// All commands of mulligan by name: their group and order in the help, and the part of the program that has them. So a build
// without the tools, the studies or the lab knows the commands that it lacks.
#pragma once

#include <span>
#include <string>

namespace mulligan {

enum class CommandGroup { run, look, lab };

// A build may exclude all parts but the core. `studies`: the tools for many runs.
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

// The reason why a word is no command of this build: "; it is `mulligan report RUN RUN`." for another name of a command, or the
// excluded part. Empty for an unknown word.
std::string why_no_command(const std::string& word);

}  // namespace mulligan

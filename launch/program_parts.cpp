#include "launch/program_parts.h"

#include <fmt/format.h>

#include <stdexcept>

#include "launch/command_table.h"
#include "launch/commands/commands.h"

namespace mulligan {
namespace {

// command_table() answers for parts that are left out of a build, so it must have the commands of each part, and no
// others. `last`: the part that was added last.
void check_table(const ProgramParts& parts, ProgramPart last) {
  std::size_t known = 0;
  for (const CommandEntry& entry : command_table()) {
    if (entry.part > last) continue;
    if (!parts.commands.contains(entry.name))
      throw std::logic_error(fmt::format("command_table() has '{}', which no part brings", entry.name));
    ++known;
  }
  if (known != parts.commands.size())
    throw std::logic_error("a part brings a command that command_table() has of another part, or lacks");
}

ProgramParts make_parts() {
  ProgramParts parts;
  parts.commands = {{"train", add_train_command},
                    {"launch", add_launch_command},
                    {"eval", add_eval_command},
                    {"generate", add_generate_command},
                    {"quantize", add_quantize_command},
                    {"ttt", add_ttt_command},
                    {"plugins", add_plugins_command},
                    {"checkpoint", add_checkpoint_command},
                    {"completion", add_completion_command}};
  check_table(parts, ProgramPart::core);
#ifdef MULLIGAN_TOOLS
  add_tools(parts);
  check_table(parts, ProgramPart::tools);
#endif
#ifdef MULLIGAN_LAB
  add_lab(parts);
  check_table(parts, ProgramPart::lab);
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

}  // namespace mulligan

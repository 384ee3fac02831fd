#include "launch/program_parts.h"

#include "launch/commands/commands.h"

namespace mulligan {
namespace {

ProgramParts make_parts() {
  ProgramParts parts;
  const CommandGroup run = CommandGroup::run, look = CommandGroup::look;
  parts.commands = {{run, add_train_command},       {run, add_launch_command},   {run, add_eval_command},
                    {run, add_generate_command},    {run, add_quantize_command}, {run, add_ttt_command},
                    {look, add_checkpoint_command}, {look, add_plugins_command}, {look, add_kernels_command}};
#ifdef MULLIGAN_TOOLS
  add_tools(parts);
#endif
#ifdef MULLIGAN_LAB
  add_lab(parts);
#endif
  parts.commands.push_back({look, add_completion_command});
  parts.commands.push_back({look, add_man_command});
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

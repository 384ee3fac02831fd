// What tools/ adds to the program.
#include "launch/program_parts.h"
#include "tools/commands/dry_run_options.h"
#include "tools/commands/tool_commands.h"
#include "tools/doctor/run_doctor.h"
#include "tools/report_page/write_report.h"

namespace mulligan {

void add_tools(ProgramParts& parts) {
  const CommandGroup run = CommandGroup::run, look = CommandGroup::look;
  parts.commands.insert(parts.commands.begin(), {run, add_prepare_command});
  for (const Command& command :
       {Command{run, add_sweep_command}, Command{run, add_record_command}, Command{look, add_config_command},
        Command{look, add_profile_command}, Command{look, add_report_command},
        Command{look, add_compare_command}, Command{look, add_stats_command},
        Command{look, add_doctor_command}, Command{look, add_export_command}})
    parts.commands.push_back(command);
  parts.observers.emplace_back([](bool force) { return std::make_unique<doctor::RunDoctor>(force); });
  parts.train_answers.emplace_back(declare_dry_run);
  parts.write_report = [](const std::filesystem::path& run) { report::write_report(run); };
}

}  // namespace mulligan

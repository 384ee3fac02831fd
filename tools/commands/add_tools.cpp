// What tools/ adds to the program.
#include "launch/program_parts.h"
#include "tools/commands/tool_commands.h"
#include "tools/cost/strict_start.h"
#include "tools/doctor/run_doctor.h"
#include "tools/report_page/write_report.h"

namespace mulligan {

void add_tools(ProgramParts& parts) {
  parts.observers.emplace_back([](bool force) { return std::make_unique<doctor::RunDoctor>(force); });
  parts.train_answers.emplace_back(declare_dry_run);
  parts.require_strict_start = [](LoadedConfig& loaded, PluginHost& host, int ranks) {
    require_strict_start(loaded, host, {.ranks = ranks});
  };
  parts.write_report = [](const std::filesystem::path& run) { report::write_report(run); };
}

}  // namespace mulligan

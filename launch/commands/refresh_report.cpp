#include "launch/commands/refresh_report.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "launch/program_parts.h"

namespace mulligan {

namespace fs = std::filesystem;

void refresh_report(const fs::path& run, const ConsoleOptions& console) {
  if (!program_parts().write_report || run.empty() || !fs::exists(RunFiles{run}.metrics())) return;
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

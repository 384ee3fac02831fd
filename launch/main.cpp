// The mulligan program.
#include <cstdio>

#include "framework/core/alternate_stack.h"
#include "framework/core/exhaustion.h"
#include "framework/core/standard_streams.h"
#include "framework/core/stop_request.h"
#include "framework/plugin/crash_report.h"
#include "launch/build_plugins.h"
#include "launch/command_line.h"

int main(int argc, char** argv) {
  mulligan::open_missing_streams();
  try {
    mulligan::take_over_signals();
  } catch (const mulligan::Error& error) {
    std::fprintf(stderr, "mulligan: %s\n", error.what());
    return static_cast<int>(error.code());
  }
  mulligan::report_exhaustion();
  mulligan::install_alternate_stack();
  mulligan::report_crashes();
  mulligan::name_build_plugins();
  const mulligan::ExitCode code = mulligan::run_command_line(argc, argv);
  mulligan::note_process_end();
  return static_cast<int>(code);
}

#include "launch/start_process.h"

#include <cstdio>

#include "framework/core/exhaustion.h"
#include "framework/core/standard_streams.h"
#include "framework/core/stop_request.h"

namespace mulligan {

int run_process(const std::function<ExitCode()>& work) {
  open_missing_streams();
  try {
    take_over_signals();
  } catch (const Error& error) {
    std::fprintf(stderr, "mulligan: %s\n", error.what());
    return static_cast<int>(error.code());
  }
  report_exhaustion();
  return static_cast<int>(work());
}

}  // namespace mulligan

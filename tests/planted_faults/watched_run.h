// The tiny run of tests/end_to_end, watched by the doctor as `mulligan train` has it.
#pragma once

#include "framework/run/run_plugins.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tools/doctor/examine.h"
#include "tools/doctor/run_doctor.h"

namespace mulligan::doctor {

inline std::vector<MakeObserver> watched(bool force = false) {
  return {[force] { return std::make_unique<RunDoctor>(force); }};
}

inline end_to_end::TinyRun& tiny() {
  static end_to_end::TinyRun run(20, watched());
  return run;
}

// What `mulligan doctor` finds in these stages, or in all.
inline std::vector<Finding> findings_of(LoadedConfig loaded, const std::vector<std::string>& stages = {}) {
  resolve_run_plugins(loaded, test_plugin_host());
  Examination wanted;
  wanted.stages = stages;
  return examine(loaded, test_plugin_host(), wanted);
}

}  // namespace mulligan::doctor

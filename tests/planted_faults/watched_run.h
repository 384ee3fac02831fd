// The tiny run of tests/end_to_end, watched by the doctor as `mulligan train` has it.
#pragma once

#include "tests/end_to_end/tiny_run.h"
#include "tools/doctor/run_doctor.h"

namespace mulligan::doctor {

inline std::vector<MakeObserver> watched(bool force = false) {
  return {[force] { return std::make_unique<RunDoctor>(force); }};
}

inline end_to_end::TinyRun& tiny() {
  static end_to_end::TinyRun run(20, watched());
  return run;
}

}  // namespace mulligan::doctor

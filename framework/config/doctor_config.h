// The [doctor] section.
#pragma once

namespace mulligan {

// What is checked when a run starts: nothing; the checks that take moments; or also those that train and
// compare on the side.
enum class DoctorLevel { off, start, all };

// [doctor]
struct DoctorConfig {
  DoctorLevel level = DoctorLevel::start;
};

}  // namespace mulligan

// Identifies the launcher's process, which is the same for all attempts of one job.
#pragma once

#include <string>

namespace mulligan {

// The nearest ancestor that has no environment variable `sign`, which a launcher sets for what it starts. This is the
// launcher itself, also if a script is between. The text is unique among all processes of all machines at any time. It
// is empty if the system gives no information.
std::string launch_agent(const std::string& sign);

// 0 if the process has ended.
long parent_of(long process);

}  // namespace mulligan

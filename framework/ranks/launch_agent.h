// The process that started this one's launcher's attempt: what stays the same over all attempts of one job.
#pragma once

#include <string>

namespace mulligan {

// The nearest ancestor that has no environment variable `sign`, which a launcher gives to what it starts: the
// launcher itself, also behind a script. In a form that names no other process of any machine at any time;
// empty where the system does not tell.
std::string launch_agent(const std::string& sign);

}  // namespace mulligan

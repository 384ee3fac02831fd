// The default secret for ranks on one machine: a file that only this user can read, so that other users' processes cannot take
// part in the run.
#pragma once

#include <string>

#include "framework/ranks/launch_environment.h"

namespace mulligan {

// A new secret: random bytes as text. Throws run_error if the system has none.
std::string random_secret();

// The first line of .mulligan/secret in the user's home folder. If that cannot be written, of mulligan-UID/secret in the folder of
// temporary files. A missing file is made of random bytes; ranks that come at the same time get the same one. Throws
// config_error if there is no such file, or if others may read or change it.
std::string user_secret(const EnvironmentLookup& lookup);

}  // namespace mulligan

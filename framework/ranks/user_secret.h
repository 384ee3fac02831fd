// The default secret for ranks on one machine: a file that only this user can read, so that other users' processes cannot take
// part in the run.
#pragma once

#include <string>

#include "framework/ranks/launch_environment.h"

namespace mulligan {

// Tells which addresses belong to this machine.

// `address`: numeric, as "10.0.0.1" or "fe80::1%eth0".
bool is_own_address(const std::string& address);

// Whether a name or an address leads to this machine: the loopback, or an address of one of the interfaces. It asks the
// resolver, which may take a moment. False if the resolver knows nothing.
bool names_this_machine(const std::string& host);

// The first line of .mulligan/secret in the user's home folder. If that cannot be written, of mulligan-UID/secret in the folder of
// temporary files. A missing file is made of random bytes; ranks that come at the same time get the same one. Throws
// config_error if there is no such file, or if others may read or change it.
std::string user_secret(const EnvironmentLookup& lookup);

}  // namespace mulligan

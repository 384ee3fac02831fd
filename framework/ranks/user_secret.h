// The secret of ranks on one machine that were given none: a file that this user alone can read, so that
// other users' processes cannot take part in the run.
#pragma once

#include <string>

#include "framework/ranks/launch_environment.h"

namespace mulligan {

// Which addresses are this machine's.

// `address`: in numbers, as "10.0.0.1" or "fe80::1%eth0".
bool is_own_address(const std::string& address);

// Whether a name or an address leads here: the loopback, or an address of one of the interfaces. Asks the
// resolver, which may take a moment; not where it knows nothing.
bool names_this_machine(const std::string& host);

// The first line of .mulligan/secret in the home folder of the user; where that cannot be written, of
// mulligan-UID/secret in the folder of temporary files. Made of random bytes where it is not there yet; ranks
// that come at the same time get the same one. Throws config_error where there is no such file, or where
// others may read or change it.
std::string user_secret(const EnvironmentLookup& lookup);

}  // namespace mulligan

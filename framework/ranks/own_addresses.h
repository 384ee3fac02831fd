// Which addresses are this machine's.
#pragma once

#include <string>

namespace mulligan {

// `address`: in numbers, as "10.0.0.1" or "fe80::1%eth0".
bool is_own_address(const std::string& address);

// Whether a name or an address leads here: the loopback, or an address of one of the interfaces. Asks the
// resolver, which may take a moment; not where it knows nothing.
bool names_this_machine(const std::string& host);

}  // namespace mulligan

// Ending every process that comes from this one.
#pragma once

namespace mulligan {

// From now on processes whose parent ends become children of this one, so that kill_descendants() finds them.
// Throws run_error when the system refuses.
void adopt_orphans();

// Kills all processes that this one has started and that those have started, also in groups and sessions of
// their own, and waits for their end, at most 10 seconds. Needs adopt_orphans(). True when none is left: the
// system cannot end one that waits for a device or a network file system.
bool kill_descendants();

}  // namespace mulligan

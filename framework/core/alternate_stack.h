// A stack for signal handlers.
#pragma once

namespace mulligan {

// Gives the calling thread a stack of its own for handlers with SA_ONSTACK, so that a handler of faults works
// where generated code uses the stack register for data, and where the stack is spent. It goes with the
// thread. Calling again changes nothing; where there is no memory for one the thread goes without.
void install_alternate_stack();

}  // namespace mulligan

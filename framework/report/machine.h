// Facts about this process, its machine and its build, for result.json.
#pragma once

#include <cstdint>
#include <string>

namespace mulligan {

// Largest resident size of this process so far (VmHWM), in bytes; 0 where the system does not tell.
std::int64_t peak_memory_bytes();
// Model name of the processor, as the system gives it.
std::string processor_name();
// The commit that the program was built from, with "+changes" when the tree had others; "unknown" outside of
// git.
std::string build_commit();

}  // namespace mulligan

// Facts about this process, its machine and its build, for result.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mulligan {

// Largest resident size of this process so far (VmHWM), in bytes; 0 if the system does not report it.
std::int64_t peak_memory_bytes();
// Model name of the CPU, as the system gives it.
std::string cpu_name();
// What decides which instructions compute, and so the last bits of results: the CPU's widest vector extensions, such as
// "avx512_bf16 + amx", and the limits that environment variables set for oneDNN.
std::string instruction_set();
// The commit that the program was built from, with "+changes" if the tree had changes; "unknown" outside of git.
std::string build_commit();

// When this process was started, as "2026-11-21T23:10:22Z".
std::string process_start_time();
// The command that started this process, quoted for a shell.
std::string process_command();
// "2026-11-21T23:10:22Z" of seconds since 1970.
std::string utc_time(std::int64_t seconds);

}  // namespace mulligan

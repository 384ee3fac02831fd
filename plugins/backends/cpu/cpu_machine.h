// What the cpu backend knows about the machine it runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mulligan::cpu {

// The CPU's model name as the kernel reports it ("AMD EPYC"), or the architecture where
// it reports none.
std::string cpu_name();

// Physical memory, or the smallest limit of the control groups where that is lower; 0 when unknown.
std::uint64_t memory_bytes();

// `bytes` of zeroed memory aligned to 256 bytes (large blocks: 2 MiB, with huge pages advised, touched first
// by the worker threads). Throws std::runtime_error with the size when the system has not that much free
// (asked for large blocks only) or refuses. Freed with free_memory.
void* allocate_zeroed(std::size_t bytes);
void free_memory(void* address);

// memset / memcpy with all worker threads for large ranges.
void zero_memory(void* to, std::size_t bytes);
void copy_memory(void* to, const void* from, std::size_t bytes);

}  // namespace mulligan::cpu

// The memory that programs take on a device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/graph/program.h"

namespace mulligan {

// What programs and their tensors take on a device, in bytes: known before any of it is taken.
struct DeviceMemory {
  std::int64_t tensors_bytes = 0;    // persistent ones
  std::int64_t arena_bytes = 0;      // the programs share it: as large as the largest needs
  std::int64_t workspace_bytes = 0;  // of kernels, shared likewise; 0 on the null backend
  std::int64_t total_bytes() const { return tensors_bytes + arena_bytes + workspace_bytes; }
};
DeviceMemory memory_of(const TensorStore& store, const std::vector<Program*>& programs);

// Throws run_error where it is more than the backend has: "WHAT needs ... GB of memory (...), but ... has ... GB; REMEDY."
void require_memory(const DeviceMemory& memory, const Backend& backend, std::string_view what,
                    std::string_view remedy);

}  // namespace mulligan

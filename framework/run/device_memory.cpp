#include "framework/run/device_memory.h"

#include <fmt/format.h>
#include <algorithm>

#include "framework/core/error.h"

namespace mulligan {

DeviceMemory memory_of(const TensorStore& store, const std::vector<Program*>& programs) {
  DeviceMemory memory;
  memory.tensors_bytes = store.total_bytes();
  for (const Program* program : programs) {
    memory.arena_bytes = std::max(memory.arena_bytes, program->arena_bytes());
    memory.workspace_bytes = std::max(memory.workspace_bytes, program->workspace_bytes());
  }
  return memory;
}

void require_memory(const DeviceMemory& memory, const Backend& backend, std::string_view what,
                    std::string_view remedy) {
  const mlg_device_info info = backend.info();
  if (info.memory_bytes == 0 || static_cast<std::uint64_t>(memory.total_bytes()) <= info.memory_bytes) return;
  const auto gigabytes = [](auto bytes) { return static_cast<double>(bytes) / 1e9; };
  throw run_error(
      "{} needs {:.1f} GB of memory ({:.1f} for tensors that stay, {:.1f} for activations), but {} has "
      "{:.1f} GB; {}.",
      what, gigabytes(memory.total_bytes()), gigabytes(memory.tensors_bytes),
      gigabytes(memory.arena_bytes + memory.workspace_bytes), info.description, gigabytes(info.memory_bytes),
      remedy);
}

}  // namespace mulligan

// What a plan made on the `null` backend learns from the configured one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/program.h"
#include "framework/run/device_memory.h"
#include "framework/run/run_plugins.h"

namespace mulligan {

// What the persistent tensors of a run are for, by their names: the rows of a memory plan.
struct MemoryRow {
  std::string what;  // "gradients"
  std::int64_t bytes = 0;
};

// The bytes of tensors (by name) added up by category, in a fixed order; empty categories are left out.
std::vector<MemoryRow> memory_by_category(const std::map<std::string, std::int64_t>& tensor_bytes);

// The configured backend with the run's plugins, where it can be started and computes; otherwise `backend` is
// null, and `note` says why.
RunPlugins device_plugins(const LoadedConfig& loaded, PluginHost& host, std::string& note);

// Bytes of workspace that the kernels of these programs share on `device`, which takes no memory for it.
std::int64_t workspace_on(Backend& device, const std::vector<Program*>& programs);

// Plans on the cuda backend's planning device from here on: the backend's keys are taken over where they are the
// cuda backend's; the device plans, or compiles where it is configured to.
void plan_on_cuda(LoadedConfig& loaded);

// How many measurements of products (mlg_work) these programs take their algorithms from; they must be bound.
std::int64_t matmul_measurements(const Backend& device, const std::vector<Program*>& programs);

}  // namespace mulligan

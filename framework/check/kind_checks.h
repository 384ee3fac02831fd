// The checks of each kind of plugin (plugin_check.h). Each adds its lines to the list; `config` holds the resolved keys.
#pragma once

#include <functional>
#include <memory>

#include "framework/check/check_list.h"
#include "framework/plugin/backend.h"

namespace mulligan {

// A cpu backend with so many threads, which knows the kernels of the plugin under check.
using BackendMaker = std::function<std::unique_ptr<Backend>(int threads)>;

void check_loss(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                CheckList& list);
void check_optimizer(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                     CheckList& list);
void check_adapters(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                    CheckList& list);
void check_schedule(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_quantizer(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_backend(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);

// "no allocation" as a problem, or empty.
template <typename Body>
std::string allocation_problem(const char* where, Body&& body);

}  // namespace mulligan

#include "framework/check/allocation_count.h"

template <typename Body>
std::string mulligan::allocation_problem(const char* where, Body&& body) {
  const std::optional<std::int64_t> allocations = allocations_of(body);
  if (!allocations || *allocations == 0) return {};
  return fmt::format("{} allocates memory {} times; take it in create() or as workspace", where,
                     *allocations);
}

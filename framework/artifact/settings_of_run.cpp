#include "framework/artifact/settings_of_run.h"

#include <algorithm>

#include "framework/artifact/evaluation_settings.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/core/error.h"
#include "framework/model/elements/stages.h"
#include "framework/plugin/ttt.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

EvaluationPlugin evaluation_plugin(const LoadedConfig& loaded, const std::string& section) {
  const PluginConfig& config = loaded.plugin(section);
  EvaluationPlugin plugin{section, config.plugin(), {}};
  for (const Setting& setting : config.settings().all()) {
    // Places to write to and libraries are this machine's.
    const bool place = setting.value.type() == ValueType::string &&
                       (setting.name == "cache" || setting.name == "kernel_file" || setting.name == "cubins");
    plugin.keys.emplace_back(setting.name, place ? ConfigValue("") : setting.value);
  }
  return plugin;
}

// [ttt.base] says the momentum, where its optimiser has any.
void add_momentum(const LoadedConfig& loaded, PluginHost& host, EvaluationPlugin& optimizer) {
  const TttSection& ttt = *loaded.config.ttt;
  const PluginHandle plugin = load_plugin(host, MLG_OPTIMIZER, *ttt.base_optimizer);
  const auto named = [](const mlg_key& key) { return std::string_view(key.name) == "momentum"; };
  if (!std::ranges::any_of(plugin->keys(), named)) return;
  const TttPlugin base(load_plugin(host, MLG_TTT, *ttt.base), loaded.plugin("ttt.base"));
  if (base.has_base_update())
    optimizer.keys.emplace_back("momentum", ConfigValue(base.base_update().momentum));
}

void add_adaptation(const LoadedConfig& loaded, PluginHost& host, EvaluationSettings& settings) {
  const TttSection& ttt = *loaded.config.ttt;
  settings.ttt = ttt.config;
  settings.lr = ttt.lr;
  settings.transform_order = ttt.transform_order;
  settings.adapters = evaluation_plugin(loaded, "ttt.adapters");
  settings.optimizer = evaluation_plugin(loaded, "ttt.optimizer");
  if (ttt.transform) settings.transform = evaluation_plugin(loaded, "ttt.transform");
  if (ttt.base) {
    settings.base = evaluation_plugin(loaded, "ttt.base");
    settings.base_optimizer = evaluation_plugin(loaded, "ttt.base.optimizer");
    add_momentum(loaded, host, settings.base_optimizer);
  }
  if (!ttt.base && !ttt.config.base_keeps_dtypes) return;
  for (const PlannedParameter& parameter : plan_parameters(loaded.config)) {
    if (ttt.config.base_keeps_dtypes)
      settings.masters.push_back({parameter.layout.master, parameter.layout.trained});
    else
      settings.masters.push_back({MLG_F32, true});
  }
}

}  // namespace

std::string missing_scoring_plugin(const LoadedConfig& loaded) {
  for (const PluginTable* table : scoring_tables(loaded.config)) {
    if (!loaded.plugins.contains(table->section)) return table->plugin;
  }
  return {};
}

std::string evaluation_settings_text(const LoadedConfig& loaded, PluginHost& host) {
  const RunConfig& config = loaded.config;
  if (!missing_scoring_plugin(loaded).empty()) return {};
  config_error_if(
      config.ttt && config.ttt->config.on_collapse == OnCollapse::fallback,
      "ttt.on_collapse = \"fallback\" needs a pass without adapters, which the evaluator of an artifact does not make; "
      "set it to \"warn\" or \"off\".");
  EvaluationSettings settings;
  settings.model = config.model;
  for (const Setting& setting : loaded.core.all()) {
    if (!setting.name.starts_with("model.")) continue;
    const std::string name = setting.name.substr(std::string_view("model.").size());
    if (const auto value = config.model.elements.find(name); value != config.model.elements.end())
      settings.elements.emplace_back(name, value->second);
  }
  settings.active = active_elements(config.model);
  settings.eval = config.eval;
  settings.seed = config.run.seed;
  settings.fused_kernels = config.run.fused_kernels;
  settings.joined = config.data.documents == DataDocuments::joined;
  const ComputeTypes types = scored_types(config);
  settings.activations = types.activations;
  settings.projections = types.projections;
  settings.backend = evaluation_plugin(loaded, "backend");
  if (config.ttt) add_adaptation(loaded, host, settings);
  return write_evaluation_settings(settings);
}

}  // namespace mulligan

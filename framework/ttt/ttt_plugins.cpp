#include "framework/ttt/ttt_plugins.h"

#include <algorithm>
#include <vector>

#include "framework/check/start_check.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

const TttSection& section(const LoadedConfig& loaded) {
  return *loaded.config.ttt;
}

// The optimiser of the base model's passes is always sgd, without weight decay.
std::unique_ptr<Optimizer> make_sgd(const LoadedConfig& loaded, PluginHost& host, double momentum) {
  const PluginHandle plugin = host.load(PluginKind::optimizer, "sgd");
  PluginTable table = read_plugin_table(nullptr, "ttt.base", loaded.file, "sgd");
  Origin origin;
  origin.kind = Origin::Kind::derived;
  table.keys.put("momentum", ConfigNode::make_leaf(ConfigValue(momentum), origin));
  const auto keys = plugin->keys();
  const auto rows = key_specs(plugin->name(), keys.data(), static_cast<std::uint32_t>(keys.size()));
  return std::make_unique<Optimizer>(plugin, resolve_plugin_keys(table, plugin->name(), rows));
}

}  // namespace

TttPlugins::TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run)
    : adapters_(load_plugin(host, MLG_TTT, section(loaded).adapters), loaded.plugin("ttt.adapters")),
      optimizer_(load_plugin(host, MLG_OPTIMIZER, section(loaded).optimizer),
                 loaded.plugin("ttt.optimizer")) {
  if (optimizer_.has_evaluation_weights()) {
    throw config_error(
        "[ttt.optimizer]: {} has evaluation weights, but adapters are scored as they are after each update; "
        "take another optimiser.",
        optimizer_.plugin().description());
  }
  if (const auto& table = section(loaded).base) {
    base_.emplace(load_plugin(host, MLG_TTT, *table), loaded.plugin("ttt.base"));
    if (base_->has_base_update()) base_optimizer_ = make_sgd(loaded, host, base_->base_update().momentum);
  }
  std::vector<const Plugin*> known;
  if (run.loss) known.push_back(&run.loss->plugin());
  for (const auto& other : run.optimizers) known.push_back(&other->plugin());
  const auto add = [&](const Plugin& plugin) {
    if (std::ranges::find(known, &plugin) != known.end()) return;
    run.backend->add_kernels(plugin);
    known.push_back(&plugin);
  };
  add(adapters_.plugin());
  add(optimizer_.plugin());
  if (base_optimizer_) add(base_optimizer_->plugin());
  require_determinism(loaded.config, *run.backend);
  check_adapters_at_start(*run.backend, adapters_, loaded.config.model);
}

TttSetup TttPlugins::setup(const RunConfig& config, const AdapterDraws& draws) const {
  const TttSection& ttt = *config.ttt;
  return {ttt.config,
          adapters_,
          optimizer_,
          ttt.lr,
          base_ ? &*base_ : nullptr,
          base_optimizer_.get(),
          config.eval.sequence_length,
          draws};
}

}  // namespace mulligan

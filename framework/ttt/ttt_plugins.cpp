#include "framework/ttt/ttt_plugins.h"

#include <algorithm>
#include <vector>

#include "framework/check/start_check.h"
#include "framework/core/error.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

const TttSection& section(const LoadedConfig& loaded) {
  return *loaded.config.ttt;
}

// The optimiser of the base model's passes, with the momentum that [ttt.base] asks for.
std::unique_ptr<Optimizer> make_base_optimizer(const LoadedConfig& loaded, PluginHost& host,
                                               double momentum) {
  PluginTable table = *section(loaded).base_optimizer;
  const PluginHandle plugin = load_plugin(host, MLG_OPTIMIZER, table);
  const auto rows = key_specs(plugin->name(), plugin->keys());
  if (std::ranges::find(rows, "momentum", &KeySpec::name) != rows.end()) {
    table.keys.put("momentum", ConfigNode::make_leaf(ConfigValue(momentum), Origin::derived()));
  }
  return std::make_unique<Optimizer>(plugin, resolve_plugin_keys(table, plugin->name(), rows));
}

void refuse_evaluation_weights(const Optimizer& optimizer, const char* what) {
  if (!optimizer.has_evaluation_weights()) return;
  throw config_error(
      "[{}]: {} has evaluation weights, but {} scored as they are after each update; take another optimiser.",
      optimizer.section(), optimizer.plugin().description(), what);
}

}  // namespace

TttPlugins::TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run)
    : adapters_(load_plugin(host, MLG_TTT, section(loaded).adapters), loaded.plugin("ttt.adapters")),
      optimizer_(load_plugin(host, MLG_OPTIMIZER, section(loaded).optimizer), loaded.plugin("ttt.optimizer")),
      draws_(static_cast<std::uint64_t>(loaded.config.run.seed)) {
  refuse_evaluation_weights(optimizer_, "adapters are");
  if (const auto& table = section(loaded).base) {
    base_.emplace(load_plugin(host, MLG_TTT, *table), loaded.plugin("ttt.base"));
    if (base_->has_base_update()) {
      base_optimizer_ = make_base_optimizer(loaded, host, base_->base_update().momentum);
      refuse_evaluation_weights(*base_optimizer_, "the base model's weights are");
    }
  }
  if (const auto& table = section(loaded).transform)
    transform_.emplace(load_plugin(host, MLG_TRANSFORM, *table), loaded.plugin("ttt.transform"));
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

TttSetup TttPlugins::setup(const RunConfig& config) const {
  const TttSection& ttt = *config.ttt;
  return {ttt.config,
          adapters_,
          optimizer_,
          ttt.lr,
          base_ ? &*base_ : nullptr,
          base_optimizer_.get(),
          config.eval.sequence_length,
          draws_,
          transform_ ? &*transform_ : nullptr,
          ttt.transform_order};
}

}  // namespace mulligan

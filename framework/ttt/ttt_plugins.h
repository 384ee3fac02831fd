// The plugin instances of a run's [ttt].
#pragma once

#include <memory>
#include <optional>

#include "framework/config/run_config.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/plugin_host.h"
#include "framework/plugin/transform.h"
#include "framework/plugin/ttt.h"
#include "framework/run/run_plugins.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

class TttPlugins {
 public:
  // From resolved keys (resolve_run_plugins); their kernels are made known to the backend of `run`. Throws
  // config_error, also where [run] determinism is then no longer kept.
  TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run);

  // What a TttScorer of `config` needs; refers to both.
  TttSetup setup(const RunConfig& config) const;

 private:
  TttPlugin adapters_;
  Optimizer optimizer_;
  PhiloxDraws draws_;
  std::optional<Transform> transform_;
  std::optional<TttPlugin> base_;
  std::unique_ptr<Optimizer> base_optimizer_;
};

}  // namespace mulligan

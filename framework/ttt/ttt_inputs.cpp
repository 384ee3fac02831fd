#include "framework/ttt/ttt_inputs.h"

#include <algorithm>

#include "framework/check/start_check.h"
#include "framework/core/error.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"

namespace mulligan {

void require_scorable(const LoadedConfig& loaded) {
  const TttSection& ttt = *loaded.config.ttt;
  const double fraction = ttt.config.document_fraction;
  const bool strict = loaded.config.ledger.rules == LedgerRules::strict;
  config_error_if(
      strict && fraction != 1.0,
      "ttt.document_fraction = {} leaves documents out, and under ledger.rules = \"strict\" a result is "
      "of the whole set; set it to 1.",
      fraction);
  // The steps have no scale of the loss ([loss_scale]), and gradients of single windows are small.
  config_error_if(
      loaded.config.phases.back().compute_dtype == MLG_F16,
      "train.compute_dtype = \"fp16\" is for training, whose loss is scaled; test-time training has no "
      "such scale, and its gradients would vanish: score with --set train.compute_dtype=bf16, or fp32.");
  if (ttt.transform && ttt.transform_order == TransformOrder::file) {
    const std::string key = ttt.transform->host.where("text_order");
    config_error_if(
        fraction < 1,
        "{} is \"file\", which tells the transform the documents that ttt.document_fraction = {} leaves "
        "out, too; take \"queue\" or \"document\".",
        key, fraction);
    config_error_if(
        strict,
        "{} is \"file\": proposals then know documents that are scored later, so no order makes the scores one "
        "chain of conditional probabilities, and ledger.rules = \"strict\" refuses them; take \"queue\" or "
        "\"document\".",
        key);
  }
  config_error_if(strict && ttt.config.check == TttCheck::off,
                  "{} is \"off\", so no score is checked for tokens that come after it, and ledger.rules = "
                  "\"strict\" refuses that; leave it out.",
                  ttt.settings.where("check"));
}

ValidationSet scored_validation(const RunConfig& config) {
  ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  if (config.eval.drop_remainder) {
    validation.tokens.resize(static_cast<std::size_t>(
        whole_rows_length(static_cast<std::int64_t>(validation.tokens.size()), config.eval.sequence_length)));
  }
  data_error_if(validation.tokens.empty(),
                "the validation shards '{}' hold less than one row of eval.sequence_length = {} tokens.",
                config.data.validation, config.eval.sequence_length);
  return validation;
}

namespace {

// The optimiser of the base model's passes, with the momentum that [ttt.base] asks for.
std::unique_ptr<Optimizer> make_base_optimizer(const LoadedConfig& loaded, PluginHost& host,
                                               double momentum) {
  PluginTable table = *loaded.config.ttt->base_optimizer;
  const PluginHandle plugin = load_plugin(host, MLG_OPTIMIZER, table);
  const auto rows = key_specs(plugin->name(), plugin->keys());
  if (std::ranges::find(rows, "momentum", &KeySpec::name) != rows.end()) {
    table.keys.put("momentum", ConfigNode::make_leaf(ConfigValue(momentum), Origin::derived()));
  }
  return std::make_unique<Optimizer>(plugin, resolve_plugin_keys(table, plugin->name(), rows));
}

void refuse_evaluation_weights(const Optimizer& optimizer, const char* what) {
  config_error_if(
      optimizer.has_evaluation_weights(),
      "[{}]: {} has evaluation weights, but {} scored as they are after each update; take another optimiser.",
      optimizer.section(), optimizer.plugin().description(), what);
}

}  // namespace

TttPlugins::TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run)
    : adapters_(load_plugin(host, MLG_TTT, loaded.config.ttt->adapters), loaded.plugin("ttt.adapters")),
      optimizer_(load_plugin(host, MLG_OPTIMIZER, loaded.config.ttt->optimizer),
                 loaded.plugin("ttt.optimizer")),
      draws_(static_cast<std::uint64_t>(loaded.config.run.seed)) {
  const TttSection& ttt = *loaded.config.ttt;
  refuse_evaluation_weights(optimizer_, "adapters are");
  if (const auto& table = ttt.base) {
    base_.emplace(load_plugin(host, MLG_TTT, *table), loaded.plugin("ttt.base"));
    if (base_->has_base_update()) {
      base_optimizer_ = make_base_optimizer(loaded, host, base_->base_update().momentum);
      refuse_evaluation_weights(*base_optimizer_, "the base model's weights are");
    }
  }
  if (const auto& table = ttt.transform)
    transform_.emplace(load_plugin(host, MLG_TRANSFORM, *table), loaded.plugin("ttt.transform"));
  const Optimizer& last = base_optimizer_ ? *base_optimizer_ : optimizer_;
  for (const Plugin* plugin : {&adapters_.plugin(), &optimizer_.plugin(), &last.plugin()})
    run.backend->add_kernels(*plugin);
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

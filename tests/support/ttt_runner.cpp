#include "tests/support/ttt_runner.h"

#include <fmt/format.h>

#include "framework/core/philox.h"
#include "framework/model/initialise.h"

namespace mulligan {

TttRunner::TttRunner(const Options& options)
    : options_(options),
      backend_(make_test_backend(options.threads)),
      store_(*backend_),
      layouts_(parameter_layouts(options.model, options.compute)),
      model_{store_, options_.model, layouts_, options.compute, options.layer_order} {
  adapters_ = make_plugin<TttPlugin>(MLG_TTT, options.adapter_plugin, options.adapters, options.adapter_file);
  optimizer_ = make_plugin<Optimizer>(MLG_OPTIMIZER, options.optimizer, options.optimizer_keys,
                                      options.optimizer_file);
  if (options.base != "none") {
    base_ = make_plugin<TttPlugin>(MLG_TTT, "global_sgd", options.base);
    base_optimizer_ = make_plugin<Optimizer>(MLG_OPTIMIZER, "sgd",
                                             fmt::format("momentum = {}", base_->base_update().momentum));
  }
  if (!options.transform.empty()) {
    transform_ = make_plugin<Transform>(MLG_TRANSFORM, options.transform, options.transform_keys,
                                        options.transform_file);
  }
  backend_->add_kernels(adapters_->plugin());
  backend_->add_kernels(optimizer_->plugin());
  if (base_optimizer_) backend_->add_kernels(base_optimizer_->plugin());
  for (const ParameterLayout& layout : layouts_) {
    store_.create(master_name(layout.spec.name), layout.spec.type.as(layout.master));
  }
}

void TttRunner::set_parameter(const std::string& name, const std::vector<float>& values) {
  store_.upload(master_name(name), values);
}

void TttRunner::set_random_parameters(std::uint64_t seed) {
  for (const ParameterLayout& layout : layouts_) {
    std::vector<float> values = initial_values(layout.spec, seed);
    const PhiloxStream noise(seed, "noise/" + layout.spec.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(0.1 * noise.normal(i));
    set_parameter(layout.spec.name, values);
  }
}

std::vector<float> TttRunner::parameter(const std::string& name) const {
  return store_.download_as<float>(master_name(name));
}

TttSetup TttRunner::setup(const TttConfig& config) const {
  return {config,
          *adapters_,
          *optimizer_,
          options_.lr,
          base_.get(),
          base_optimizer_.get(),
          options_.row_tokens,
          *options_.draws,
          transform_.get(),
          options_.transform_order};
}

}  // namespace mulligan

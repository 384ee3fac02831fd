// The optimiser plugin `adamw`: Adam with decoupled weight decay.
#include <mulligan/optimizer.hpp>

#include <cmath>

#include "optimizers/adamw/adamw_step.h"

namespace mulligan::optimizers {
namespace {

struct AdamwConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.0;
  std::string state_dtype = "fp32";
};

class Adamw : public sdk::Optimizer {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Adam with decoupled weight decay";
  static constexpr unsigned state_version = 1;
  static constexpr bool fused_update = true, elementwise = true;
  static inline const sdk::Schema<AdamwConfig> schema{
      sdk::key("beta1", &AdamwConfig::beta1, "decay per step of the mean of the gradients")
          .range(0.0, 0.999999),
      sdk::key("beta2", &AdamwConfig::beta2, "decay per step of the mean of the squared gradients")
          .range(0.0, 0.9999999),
      sdk::key("eps", &AdamwConfig::eps, "added to the root of the second moment; in units of the gradient")
          .range(1e-30, 1.0),
      sdk::key("weight_decay", &AdamwConfig::weight_decay,
               "fraction of a weight taken off per step, times the scheduled learning rate")
          .at_least(0.0),
      sdk::key("state_dtype", &AdamwConfig::state_dtype,
               "dtype of the two moments: fp32, or that of the master weights")
          .choices("fp32|master")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<AdamwStep>(), sdk::cpu_kernel<AdamwUpdate>(),
                                              adamw_step_cuda(), adamw_update_cuda()};

  explicit Adamw(const AdamwConfig& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return AdamwStep::scalar_count; }

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters) {
      const auto [exp_avg, exp_avg_sq] = moments(recorder, parameter);
      recorder.launch(AdamwStep::name, {parameter.gradient, parameter.master, exp_avg, exp_avg_sq, scalars},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"beta2", config_.beta2},
                       {"eps", config_.eps}});
    }
  }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      const auto [exp_avg, exp_avg_sq] = moments(recorder, parameter);
      recorder.launch(
          AdamwUpdate::name,
          {parameter.gradient, parameter.master, config_.beta1 > 0 ? exp_avg : sdk::absent, exp_avg_sq,
           scalars, update.gradient_scale, sdk::average_of(update, i), sdk::copy_of(update, i)},
          {{"lr_multiplier", parameter.lr_multiplier},
           {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
           {"beta2", config_.beta2},
           {"eps", config_.eps},
           {"average_decay", update.average_decay}});
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    const auto t = static_cast<double>(step.step);
    const double beta1 = config_.beta1 * step.momentum_factor;
    if (beta1 >= 1.0) {
      throw sdk::Error(
          "optimizer adamw: the schedule's momentum_factor makes beta1 1 or more; lower one of the two");
    }
    values[AdamwStep::lr] = static_cast<float>(step.lr);
    values[AdamwStep::beta1] = static_cast<float>(beta1);
    values[AdamwStep::one_minus_beta1] = static_cast<float>(1.0 - beta1);
    values[AdamwStep::weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
    values[AdamwStep::bias_correction1] = static_cast<float>(1.0 - std::pow(beta1, t));
    values[AdamwStep::inverse_sqrt_bias_correction2] =
        static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(config_.beta2, t)));
  }

 private:
  struct Moments {
    sdk::Value exp_avg, exp_avg_sq;
  };
  Moments moments(sdk::Recorder& recorder, const sdk::Parameter& parameter) const {
    mlg_tensor state = recorder.describe(parameter.master);
    if (config_.state_dtype == "fp32") state.dtype = MLG_F32;
    const std::string name = parameter.name;
    return {recorder.state(name + ".exp_avg", state), recorder.state(name + ".exp_avg_sq", state)};
  }

  AdamwConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Adamw, adamw);

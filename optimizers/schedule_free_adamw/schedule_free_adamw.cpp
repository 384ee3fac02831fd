// The optimiser plugin `schedule_free_adamw`: AdamW that evaluates an average of its iterates
// instead of lowering the learning rate. Give it schedule "constant", or one with a warm-up only;
// formulas in schedule_free_step.h.
#include <mulligan/optimizer.hpp>

#include <cmath>

#include "optimizers/schedule_free_adamw/schedule_free_step.h"

namespace mulligan::optimizers {
namespace {

struct ScheduleFreeConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

class ScheduleFreeAdamw : public sdk::Optimizer {
 public:
  static constexpr const char* summary = "AdamW whose averaged weights are scored, without a falling rate";
  static constexpr unsigned state_version = 1;
  static constexpr bool evaluation_weights = true, fused_update = true, elementwise = true;
  static inline const sdk::Schema<ScheduleFreeConfig> schema{
      sdk::key("beta1", &ScheduleFreeConfig::beta1,
               "share of the average in the weights at which gradients are taken")
          .range(0.1, 0.999999),
      sdk::key("beta2", &ScheduleFreeConfig::beta2, "decay per step of the mean of the squared gradients")
          .range(0.0, 0.9999999),
      sdk::key("eps", &ScheduleFreeConfig::eps,
               "added to the root of the second moment; in units of the gradient")
          .range(1e-30, 1.0),
      sdk::key("weight_decay", &ScheduleFreeConfig::weight_decay,
               "fraction of a weight taken off per step, times the scheduled learning rate")
          .at_least(0.0)};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<ScheduleFreeShare>(),
                                              sdk::cpu_kernel<ScheduleFreeUpdate>(),
                                              sdk::cpu_kernel<ScheduleFreeAverage>(),
                                              schedule_free_share_cuda,
                                              schedule_free_update_cuda,
                                              schedule_free_average_cuda};

  explicit ScheduleFreeAdamw(const ScheduleFreeConfig& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return free_scalar_count; }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    if (parameters.empty()) return;
    const sdk::Value share = record_share(recorder, parameters[0], scalars);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      const auto [offset, exp_avg_sq] = states(recorder, parameter);
      recorder.launch(ScheduleFreeUpdate::name,
                      {parameter.gradient, parameter.master, offset, exp_avg_sq, share, scalars,
                       update.gradient_scale, sdk::average_of(update, i), sdk::copy_of(update, i)},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"beta1", config_.beta1},
                       {"beta2", config_.beta2},
                       {"eps", config_.eps},
                       {"average_decay", update.average_decay}});
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    if (step.momentum_factor != 1) {
      throw sdk::Error(
          "optimizer schedule_free_adamw: beta1 cannot change during a run, but the "
          "schedule's momentum_factor is not 1; take a schedule that leaves the momentum alone");
    }
    const double correction = std::sqrt(1.0 - std::pow(config_.beta2, static_cast<double>(step.step)));
    values[free_rate] = static_cast<float>(step.lr * correction);
    values[free_weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
  }

  void record_evaluation(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
                         std::span<const sdk::Value> evaluation) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const mlg_tensor state = sdk::with_dtype(recorder.describe(parameters[i].master), MLG_F32);
      const sdk::Value offset = recorder.state(parameters[i].name + std::string(".offset"), state);
      recorder.launch(ScheduleFreeAverage::name, {parameters[i].master, offset, evaluation[i]},
                      {{"ratio", (1.0 - config_.beta1) / config_.beta1}});
    }
  }

 private:
  // Under the first parameter's name: a group may be recorded in several disjoint parts.
  static sdk::Value record_share(sdk::Recorder& recorder, const sdk::Parameter& first, sdk::Value scalars) {
    const mlg_tensor one = sdk::shape(MLG_F32, {1});
    const sdk::Value sum = recorder.state(first.name + std::string(".weight_sum"), one);
    const sdk::Value share = recorder.scratch(one);
    recorder.launch(ScheduleFreeShare::name, {scalars, sum, share});
    return share;
  }
  struct States {
    sdk::Value offset, exp_avg_sq;
  };
  static States states(sdk::Recorder& recorder, const sdk::Parameter& parameter) {
    const mlg_tensor state = sdk::with_dtype(recorder.describe(parameter.master), MLG_F32);
    const std::string name = parameter.name;
    return {recorder.state(name + ".offset", state), recorder.state(name + ".exp_avg_sq", state)};
  }

  ScheduleFreeConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::ScheduleFreeAdamw, schedule_free_adamw);

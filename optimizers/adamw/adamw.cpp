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
  bool bias_correction = true;
  std::string state_dtype = "fp32";
  bool stochastic_rounding = false;
  std::int64_t rounding_seed = 0;
  bool allow_stall = false;
};

class Adamw : public sdk::Optimizer {
 public:
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
      sdk::key("bias_correction", &AdamwConfig::bias_correction,
               "divide the moments by 1 - beta^t, because they begin at zero"),
      sdk::key("state_dtype", &AdamwConfig::state_dtype,
               "dtype of the two moments: fp32, bf16, or that of the master weights")
          .choices("fp32|bf16|master"),
      sdk::key("stochastic_rounding", &AdamwConfig::stochastic_rounding,
               "round moments in bf16 up or down so that their mean stays, by random numbers"),
      sdk::key("rounding_seed", &AdamwConfig::rounding_seed, "seed of these random numbers").at_least(0),
      sdk::key("allow_stall", &AdamwConfig::allow_stall,
               "allow moments in bf16 with rounding to nearest at a beta2 that can stop their updates, to "
               "repeat such a run")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<AdamwUpdate>(),
                                              sdk::cpu_kernel<AdamwStochasticUpdate>(), adamw_update_cuda,
                                              adamw_stochastic_update_cuda};

  explicit Adamw(const AdamwConfig& config) : config_(config) {
    if (config_.state_dtype == "bf16" && !config_.stochastic_rounding && !config_.allow_stall) {
      throw sdk::Error(
          "optimizer adamw: second moments in bf16 stand still when rounded to the nearest; set stochastic_rounding = "
          "true, state_dtype = \"fp32\", or, to repeat a run that was made so, allow_stall = true");
    }
  }

  std::uint32_t scalar_count() const override { return AdamwUpdate::scalar_count; }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      const auto [exp_avg, exp_avg_sq] = moments(recorder, parameter);
      const sdk::Value arguments[] = {parameter.gradient,
                                      parameter.master,
                                      exp_avg,
                                      exp_avg_sq,
                                      scalars,
                                      update.gradient_scale,
                                      sdk::average_of(update, i),
                                      sdk::copy_of(update, i)};
      const sdk::Attribute attributes[] = {
          {"lr_multiplier", parameter.lr_multiplier},
          {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
          {"beta2", config_.beta2},
          {"eps", config_.eps},
          {"average_decay", update.average_decay},
          {"stream", stream_of(parameter.name)}};
      const bool stochastic = config_.stochastic_rounding && recorder.describe(exp_avg_sq).dtype == MLG_BF16;
      recorder.launch(stochastic ? AdamwStochasticUpdate::name : AdamwUpdate::name, arguments,
                      std::span(attributes).first(stochastic ? 6 : 5));
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    const auto t = static_cast<double>(step.step);
    const double beta1 = config_.beta1 * step.momentum_factor;
    if (beta1 >= 1.0) {
      throw sdk::Error(
          "optimizer adamw: the schedule's momentum_factor makes beta1 1 or more; lower one of the two");
    }
    values[AdamwUpdate::lr] = static_cast<float>(step.lr);
    values[AdamwUpdate::beta1] = static_cast<float>(beta1);
    values[AdamwUpdate::one_minus_beta1] = static_cast<float>(1.0 - beta1);
    values[AdamwUpdate::weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
    const auto missing = [&](double beta) { return config_.bias_correction ? 1.0 - std::pow(beta, t) : 1.0; };
    values[AdamwUpdate::bias_correction1] = static_cast<float>(missing(beta1));
    values[AdamwUpdate::inverse_sqrt_bias_correction2] =
        static_cast<float>(1.0 / std::sqrt(missing(config_.beta2)));
    values[AdamwUpdate::step_low] = static_cast<float>(step.step & 0xFFFF);
    values[AdamwUpdate::step_high] = static_cast<float>(step.step >> 16 & 0xFFFF);
  }

 private:
  struct Moments {
    sdk::Value exp_avg, exp_avg_sq;
  };
  Moments moments(sdk::Recorder& recorder, const sdk::Parameter& parameter) const {
    mlg_tensor state = recorder.describe(parameter.master);
    if (config_.state_dtype == "fp32") state.dtype = MLG_F32;
    if (config_.state_dtype == "bf16") state.dtype = MLG_BF16;
    refuse_stall(state.dtype);
    const std::string name = parameter.name;
    // Without momentum the mean of the gradients is the gradient.
    return {config_.beta1 > 0 ? recorder.state(name + ".exp_avg", state) : sdk::absent,
            recorder.state(name + ".exp_avg_sq", state)};
  }

  // To the nearest a second moment stands still where a step changes it by less than half of the distance of
  // its neighbours: within 2^-9 / (1 - beta2) of where it should go. The published record keeps bf16 moments
  // with beta2 =
  // 0.95, which leaves 4 to 8 %; where it is more than twice that the run would be another one.
  void refuse_stall(std::int32_t state) const {
    if (state != MLG_BF16 || config_.stochastic_rounding || config_.allow_stall ||
        0x1p-9 <= 0.1 * (1.0 - config_.beta2))
      return;
    throw sdk::Error(
        "optimizer adamw: second moments in bf16 stand still when rounded to the nearest; set stochastic_rounding = "
        "true, state_dtype = \"fp32\", beta2 of 0.98 at most, or, to repeat a run that was made so, allow_stall = true");
  }

  // The stream of a parameter's random numbers: FNV-1a of its name and the seed, below 2^53.
  double stream_of(const char* name) const {
    std::uint64_t hash = 0xcbf29ce484222325ULL ^ static_cast<std::uint64_t>(config_.rounding_seed);
    for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3ULL;
    return static_cast<double>(hash >> 11);
  }

  AdamwConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Adamw, adamw);

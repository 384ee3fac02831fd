// The optimiser plugin `sgd`: gradient descent with momentum.
#include <mulligan/optimizer.hpp>

#include "optimizers/sgd/sgd_step.h"

namespace mulligan::optimizers {
namespace {

struct SgdConfig {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.0;
  std::string weight_decay_mode = "decoupled";
};

class Sgd : public sdk::Optimizer {
 public:
  static constexpr const char* summary = "gradient descent with (Nesterov) momentum";
  static constexpr unsigned state_version = 1;
  static constexpr bool fused_update = true, elementwise = true;
  static inline const sdk::Schema<SgdConfig> schema{
      sdk::key("momentum", &SgdConfig::momentum, "decay of the momentum buffer per step; 0: no buffer")
          .range(0.0, 1.0),
      sdk::key("nesterov", &SgdConfig::nesterov, "step along gradient + momentum * buffer"),
      sdk::key("weight_decay", &SgdConfig::weight_decay,
               "strength of the weight decay per step, dimensionless")
          .at_least(0.0),
      sdk::key(
          "weight_decay_mode", &SgdConfig::weight_decay_mode,
          "decoupled: shrinks the weight by lr * weight_decay; coupled: adds weight_decay * weight to the "
          "gradient (L2)")
          .choices("decoupled|coupled")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<SgdUpdate>(), sgd_update_cuda};

  explicit Sgd(const SgdConfig& config) : config_(config) {
    if (config_.nesterov && config_.momentum == 0.0) {
      throw sdk::Error("optimizer sgd: nesterov = true needs momentum > 0; set momentum or drop nesterov");
    }
  }

  std::uint32_t scalar_count() const override { return SgdUpdate::scalar_count; }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      recorder.launch(SgdUpdate::name,
                      {parameter.gradient, parameter.master, momentum_buffer(recorder, parameter), scalars,
                       update.gradient_scale, sdk::average_of(update, i), sdk::copy_of(update, i)},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"decoupled", config_.weight_decay_mode == "decoupled"},
                       {"nesterov", config_.nesterov},
                       {"average_decay", update.average_decay}});
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    const double momentum = config_.momentum * step.momentum_factor;
    if (momentum > 1.0) {
      throw sdk::Error(
          "optimizer sgd: the schedule's momentum_factor makes the momentum more than 1; lower one of the "
          "two");
    }
    values[SgdUpdate::lr] = static_cast<float>(step.lr);
    values[SgdUpdate::momentum] = static_cast<float>(momentum);
    values[SgdUpdate::weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
  }

 private:
  sdk::Value momentum_buffer(sdk::Recorder& recorder, const sdk::Parameter& parameter) const {
    if (config_.momentum == 0.0) return sdk::absent;
    const mlg_tensor shape = sdk::with_dtype(recorder.describe(parameter.master), MLG_F32);
    return recorder.state(parameter.name + std::string(".momentum_buffer"), shape, {.survives_warmup = true});
  }

  SgdConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Sgd, sgd);

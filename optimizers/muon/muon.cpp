// The optimiser plugin `muon`: momentum whose update is orthogonalised, for matrices and banks of matrices.
#include <mulligan/optimizer.hpp>

#include <algorithm>
#include <cmath>

#include "optimizers/muon/joined_banks.h"
#include "optimizers/muon/muon_kernels.h"
#include "optimizers/muon/newton_schulz.h"

namespace mulligan::optimizers {
namespace {

struct MuonConfig {
  double momentum = 0.95;
  double momentum_warmup_start = 0.85;
  std::int64_t momentum_warmup_steps = 0;
  bool nesterov = true;
  double weight_decay = 0.0;
  std::string coefficients = "polar_express";
  int iterations = 5;
  std::string iteration_form = "direct";
  bool row_normalize = false;
  std::string compute_dtype = "fp32";
};

class Muon : public sdk::Optimizer {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary =
      "momentum with orthogonalised updates, for matrices and banks of them";
  static constexpr unsigned state_version = 1;
  static constexpr bool fused_update = true;
  static inline const sdk::Schema<MuonConfig> schema{
      sdk::key("momentum", &MuonConfig::momentum, "decay of the momentum buffer per step, after its warm-up")
          .range(0.0, 0.999999),
      sdk::key("momentum_warmup_start", &MuonConfig::momentum_warmup_start, "momentum of the first step")
          .range(0.0, 0.999999),
      sdk::key("momentum_warmup_steps", &MuonConfig::momentum_warmup_steps,
               "steps over which the momentum goes linearly from momentum_warmup_start to momentum; 0: none")
          .at_least(0),
      sdk::key("nesterov", &MuonConfig::nesterov,
               "orthogonalise gradient + momentum * buffer, not the buffer"),
      sdk::key("weight_decay", &MuonConfig::weight_decay,
               "fraction of a weight taken off per step, times the scheduled learning rate")
          .at_least(0.0),
      sdk::key("coefficients", &MuonConfig::coefficients,
               "polynomials of the Newton-Schulz iteration: polar_express (one per iteration) or plain")
          .choices("polar_express|plain"),
      sdk::key("iterations", &MuonConfig::iterations, "Newton-Schulz iterations per step").range(1, 100),
      sdk::key("iteration_form", &MuonConfig::iteration_form,
               "direct: each iteration from its own Gram matrix; gram: in fp32, three from one where a "
               "matrix is at least twice as long as wide, which is less work and equal but for rounding")
          .choices("direct|gram"),
      sdk::key("row_normalize", &MuonConfig::row_normalize,
               "scale each row to length 1 before orthogonalising"),
      sdk::key("compute_dtype", &MuonConfig::compute_dtype,
               "dtype of the momentum buffer and of the iteration")
          .choices("fp32|bf16")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<MuonMomentum>(),
                                              sdk::cpu_kernel<MuonScaledMomentum>(),
                                              sdk::cpu_kernel<MuonApply>(),
                                              sdk::cpu_kernel<MuonUpdate>(),
                                              muon_momentum_cuda(),
                                              muon_scaled_momentum_cuda(),
                                              muon_apply_cuda(),
                                              muon_update_cuda()};

  explicit Muon(const MuonConfig& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return muon_scalar_count; }

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters) {
      const sdk::Value direction = recorder.scratch(compute_shape(recorder, parameter));
      record_momentum(recorder, parameter, scalars, sdk::absent, direction);
      const sdk::Value update =
          record_newton_schulz(recorder, direction, polynomials(), config_.iterations, form());
      recorder.launch(MuonApply::name, {update, parameter.master, scalars},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"scale", step_scale(recorder, parameter)}});
    }
  }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    const std::vector<sdk::Value> directions =
        record_directions(recorder, parameters, scalars, update.gradient_scale);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      recorder.launch(
          MuonUpdate::name,
          {directions[i], parameter.master, scalars, sdk::average_of(update, i), sdk::copy_of(update, i)},
          {{"lr_multiplier", parameter.lr_multiplier},
           {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
           {"scale", step_scale(recorder, parameter)},
           {"average_decay", update.average_decay}});
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    values[muon_lr] = static_cast<float>(step.lr);
    double momentum = config_.momentum;
    if (config_.momentum_warmup_steps > 0) {
      // The first update (step 1) runs with the start value.
      const double fraction = std::min(
          1.0, static_cast<double>(step.step - 1) / static_cast<double>(config_.momentum_warmup_steps));
      momentum = (1.0 - fraction) * config_.momentum_warmup_start + fraction * config_.momentum;
    }
    momentum *= step.momentum_factor;
    if (momentum >= 1.0) {
      throw sdk::Error(
          "optimizer muon: the schedule's momentum_factor makes the momentum 1 or more; lower one of the "
          "two");
    }
    values[muon_momentum] = static_cast<float>(momentum);
    values[muon_weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
  }

 private:
  // The orthogonalised directions of all parameters, joined where they can be.
  std::vector<sdk::Value> record_directions(sdk::Recorder& recorder,
                                            std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                                            sdk::Value gradient_scale) const {
    std::vector<mlg_tensor> shapes;
    for (const sdk::Parameter& parameter : parameters) shapes.push_back(compute_shape(recorder, parameter));
    std::vector<sdk::Value> directions;
    // Joined banks iterate side by side, each iteration from its own Gram matrices.
    if (form() != NewtonSchulzForm::direct || !JoinedBanks::joins(shapes)) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const sdk::Value direction = recorder.scratch(shapes[i]);
        record_momentum(recorder, parameters[i], scalars, gradient_scale, direction);
        directions.push_back(
            record_newton_schulz(recorder, direction, polynomials(), config_.iterations, form()));
      }
      return directions;
    }
    JoinedBanks banks(recorder, shapes);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      record_momentum(recorder, parameters[i], scalars, gradient_scale, banks.input(i));
    }
    banks.record(polynomials(), config_.iterations);
    for (std::size_t i = 0; i < parameters.size(); ++i) directions.push_back(banks.output(i));
    return directions;
  }

  // The momentum of one parameter, normalised, into `direction`.
  void record_momentum(sdk::Recorder& recorder, const sdk::Parameter& parameter, sdk::Value scalars,
                       sdk::Value gradient_scale, sdk::Value direction) const {
    const sdk::Value buffer = recorder.state(parameter.name + std::string(".momentum_buffer"),
                                             recorder.describe(direction), {.survives_warmup = true});
    std::vector<sdk::Value> arguments = {parameter.gradient, buffer, scalars, direction};
    if (gradient_scale != sdk::absent) arguments.push_back(gradient_scale);
    const sdk::Attribute attributes[] = {{"nesterov", config_.nesterov},
                                         {"row_normalize", config_.row_normalize}};
    recorder.launch(gradient_scale == sdk::absent ? MuonMomentum::name : MuonScaledMomentum::name, arguments,
                    attributes);
  }

  // Of momentum buffer and iteration. Refuses what cannot be orthogonalised.
  mlg_tensor compute_shape(const sdk::Recorder& recorder, const sdk::Parameter& parameter) const {
    const mlg_tensor shape = recorder.describe(parameter.master);
    if (shape.rank != 2 && shape.rank != 3) {
      throw sdk::Error(
          "optimizer muon: parameter " + std::string(parameter.name) + " has rank " +
          std::to_string(shape.rank) +
          ", but only matrices [r, c] and banks [B, r, c] can be orthogonalised; give it to adamw or sgd");
    }
    return sdk::with_dtype(shape, config_.compute_dtype == "bf16" ? MLG_BF16 : MLG_F32);
  }

  std::span<const Quintic> polynomials() const {
    if (config_.coefficients == "polar_express") return polar_express;
    return plain_newton_schulz;
  }
  NewtonSchulzForm form() const {
    return config_.iteration_form == "gram" ? NewtonSchulzForm::gram : NewtonSchulzForm::direct;
  }

  static double step_scale(const sdk::Recorder& recorder, const sdk::Parameter& parameter) {
    const mlg_tensor shape = recorder.describe(parameter.master);
    const auto rows = static_cast<double>(shape.shape[shape.rank - 2]);
    const auto columns = static_cast<double>(shape.shape[shape.rank - 1]);
    return std::sqrt(std::max(1.0, rows / columns));
  }

  MuonConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Muon, muon);

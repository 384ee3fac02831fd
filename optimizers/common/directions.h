// What matrix optimisers share up to the orthogonalised update: their keys, the momentum, the iteration.
#pragma once

#include <mulligan/optimizer.hpp>

#include <span>
#include <string>
#include <vector>

#include "optimizers/common/momentum.h"
#include "optimizers/common/newton_schulz.h"

namespace mulligan::optimizers {

struct DirectionConfig {
  double momentum = 0.95;
  double momentum_warmup_start = 0.85;
  std::int64_t momentum_warmup_steps = 0;
  bool nesterov = true;
  std::string momentum_form = "sum";
  std::string momentum_dtype = "compute";
  std::string coefficients = "polar_express";
  int iterations = 5;
  std::string iteration_form = "direct";
  bool row_normalize = false;
  std::string norm = "frobenius";
  std::string compute_dtype = "fp32";
};

// The same with the momentum and the iteration of the optimisers of the modded-nanogpt arena.
struct ArenaDirectionConfig : DirectionConfig {
  ArenaDirectionConfig() {
    momentum_form = "mean";
    momentum_dtype = "fp32";
    coefficients = "2, -1.5, 0.5";
    iterations = 12;
  }
};

// The keys of DirectionConfig but for those that only some plugins have, then `own`.
template <typename Config, typename... Keys>
sdk::Schema<Config> with_direction_keys(const Keys&... own) {
  return sdk::Schema<Config>{
      sdk::key<Config, double>("momentum", &Config::momentum,
                               "decay of the momentum buffer per step, after its warm-up")
          .range(0.0, 0.999999),
      sdk::key<Config, double>("momentum_warmup_start", &Config::momentum_warmup_start,
                               "momentum of the first step")
          .range(0.0, 0.999999),
      sdk::key<Config, std::int64_t>(
          "momentum_warmup_steps", &Config::momentum_warmup_steps,
          "steps over which the momentum goes linearly from momentum_warmup_start to momentum; 0: none")
          .at_least(0),
      sdk::key<Config, bool>("nesterov", &Config::nesterov,
                             "orthogonalise gradient + momentum * buffer, not the buffer"),
      sdk::key<Config, std::string>("momentum_form", &Config::momentum_form,
                                    "sum: the buffer adds up gradients; mean: gradients count times "
                                    "1 - momentum, in the buffer and in nesterov's sum")
          .choices("sum|mean"),
      sdk::key<Config, std::string>("momentum_dtype", &Config::momentum_dtype,
                                    "dtype of the momentum buffer; compute: compute_dtype")
          .choices("compute|fp32|bf16"),
      sdk::key<Config, std::string>(
          "coefficients", &Config::coefficients,
          "polynomials of the Newton-Schulz iteration: polar_express (one per "
          "iteration), plain, or three numbers \"a, b, c\" of a X + (b A + c A^2) X"),
      sdk::key<Config, int>("iterations", &Config::iterations, "Newton-Schulz iterations per step")
          .range(1, 100),
      sdk::key<Config, std::string>("compute_dtype", &Config::compute_dtype, "dtype of the iteration")
          .choices("fp32|bf16"),
      own...};
}

class Directions {
 public:
  // `optimizer`: the plugin's name, for its sentences. Throws where a key makes no sense.
  Directions(const char* optimizer, const DirectionConfig& config);

  // The orthogonalised directions of all parameters. gradient_scale: absent, or the factor of the gradients.
  // `join`: banks iterate side by side where they can.
  std::vector<sdk::Value> record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
                                 sdk::Value scalars, sdk::Value gradient_scale, bool join) const;
  // The momentum of one parameter, normalised, into `direction`: f32 or bf16, of the parameter's shape.
  void record_momentum(sdk::Recorder& recorder, const sdk::Parameter& parameter, sdk::Value scalars,
                       sdk::Value gradient_scale, sdk::Value direction, bool normalize) const;
  // The iteration on x ([r,c] or [B,r,c]), once it is divided by its Schatten-4 norm, at least 1e-7.
  sdk::Value orthogonalise(sdk::Recorder& recorder, sdk::Value x) const;
  // Fills the scalars of MatrixScalar (momentum.h).
  void scalars(const sdk::Step& step, std::span<float> values) const;
  // What the iteration works on. Refuses what cannot be orthogonalised.
  mlg_tensor compute_shape(const sdk::Recorder& recorder, const sdk::Parameter& parameter) const;

 private:
  NewtonSchulzForm form() const {
    return config_.iteration_form == "gram" ? NewtonSchulzForm::gram : NewtonSchulzForm::direct;
  }

  std::string optimizer_;
  DirectionConfig config_;
  std::vector<Quintic> polynomials_;
};

// What plugins of matrices have in common.
class MatrixOptimizer : public sdk::Optimizer {
 public:
  MatrixOptimizer(const char* name, const DirectionConfig& config) : directions_(name, config) {}
  std::uint32_t scalar_count() const override { return matrix_scalar_count; }
  void scalars(const sdk::Step& step, std::span<float> values) const override {
    directions_.scalars(step, values);
  }

 protected:
  Directions directions_;
};

// sqrt(max(1, r/c)): by what an orthogonalised [r, c] counts more.
double tall_scale(const sdk::Recorder& recorder, const sdk::Parameter& parameter);

}  // namespace mulligan::optimizers

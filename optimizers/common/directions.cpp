#include "optimizers/common/directions.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "optimizers/common/joined_banks.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/common/schatten.h"

namespace mulligan::optimizers {
namespace {

// "a, b, c"; empty where the text is something else.
std::vector<Quintic> own_polynomial(const std::string& text) {
  double numbers[3] = {};
  const char *at = text.data(), *end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    while (at < end && (*at == ' ' || (i > 0 && *at == ','))) ++at;
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || !std::isfinite(numbers[i])) return {};
    at = next;
  }
  while (at < end && *at == ' ') ++at;
  if (at != end) return {};
  return {{numbers[0], numbers[1], numbers[2]}};
}

std::vector<Quintic> polynomials_of(const char* optimizer, const std::string& coefficients) {
  if (coefficients == "polar_express") return {polar_express.begin(), polar_express.end()};
  if (coefficients == "plain") return {plain_newton_schulz.begin(), plain_newton_schulz.end()};
  std::vector<Quintic> own = own_polynomial(coefficients);
  if (!own.empty()) return own;
  throw sdk::Error(std::string("optimizer ") + optimizer + ": coefficients is \"" + coefficients +
                   "\"; write \"polar_express\", \"plain\" or three numbers such as \"2, -1.5, 0.5\"");
}

}  // namespace

Directions::Directions(const char* optimizer, const DirectionConfig& config)
    : optimizer_(optimizer), config_(config), polynomials_(polynomials_of(optimizer, config.coefficients)) {}

std::vector<sdk::Value> Directions::record(sdk::Recorder& recorder,
                                           std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                                           sdk::Value gradient_scale, bool join) const {
  const bool schatten = config_.norm == "schatten4";
  std::vector<mlg_tensor> shapes;
  for (const sdk::Parameter& parameter : parameters) shapes.push_back(compute_shape(recorder, parameter));
  std::vector<sdk::Value> directions;
  // Joined banks iterate side by side, each iteration from its own Gram matrices.
  if (!join || schatten || form() != NewtonSchulzForm::direct || !JoinedBanks::joins(shapes)) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Value direction = recorder.scratch(shapes[i]);
      record_momentum(recorder, parameters[i], scalars, gradient_scale, direction, !schatten);
      directions.push_back(
          schatten ? orthogonalise(recorder, direction)
                   : record_newton_schulz(recorder, direction, polynomials_, config_.iterations, form()));
    }
    return directions;
  }
  JoinedBanks banks(recorder, shapes);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    record_momentum(recorder, parameters[i], scalars, gradient_scale, banks.input(i), true);
  }
  banks.record(polynomials_, config_.iterations);
  for (std::size_t i = 0; i < parameters.size(); ++i) directions.push_back(banks.output(i));
  return directions;
}

void Directions::record_momentum(sdk::Recorder& recorder, const sdk::Parameter& parameter, sdk::Value scalars,
                                 sdk::Value gradient_scale, sdk::Value direction, bool normalize) const {
  mlg_tensor buffer_shape = recorder.describe(direction);
  if (config_.momentum_dtype != "compute") {
    buffer_shape.dtype = config_.momentum_dtype == "bf16" ? MLG_BF16 : MLG_F32;
  }
  const sdk::Value buffer = recorder.state(parameter.name + std::string(".momentum_buffer"), buffer_shape,
                                           {.survives_warmup = true});
  launch_named<MatrixMomentum>(recorder, optimizer_,
                               {parameter.gradient, buffer, scalars, direction, gradient_scale},
                               {{"nesterov", config_.nesterov},
                                {"row_normalize", config_.row_normalize},
                                {"mean", config_.momentum_form == "mean"},
                                {"normalize", normalize}});
}

sdk::Value Directions::orthogonalise(sdk::Recorder& recorder, sdk::Value x) const {
  const sdk::Value direction = recorder.scratch(recorder.describe(x));
  launch_named<DivideByNorm>(recorder, optimizer_, {x, record_schatten4(recorder, optimizer_, x), direction},
                             {{"floor", 1e-7}});
  return record_newton_schulz(recorder, direction, polynomials_, config_.iterations, form());
}

void Directions::scalars(const sdk::Step& step, std::span<float> values) const {
  double momentum = config_.momentum;
  if (config_.momentum_warmup_steps > 0) {
    // The first update (step 1) runs with the start value.
    const double fraction = std::min(
        1.0, static_cast<double>(step.step - 1) / static_cast<double>(config_.momentum_warmup_steps));
    momentum = (1.0 - fraction) * config_.momentum_warmup_start + fraction * config_.momentum;
  }
  momentum *= step.momentum_factor;
  if (momentum >= 1.0) {
    throw sdk::Error("optimizer " + optimizer_ +
                     ": the schedule's momentum_factor makes the momentum 1 or more; lower one of the two");
  }
  values[matrix_lr] = static_cast<float>(step.lr);
  values[matrix_momentum] = static_cast<float>(momentum);
  values[matrix_weight_decay_factor] = static_cast<float>(step.weight_decay_factor);
}

mlg_tensor Directions::compute_shape(const sdk::Recorder& recorder, const sdk::Parameter& parameter) const {
  const mlg_tensor shape = recorder.describe(parameter.master);
  if (shape.rank != 2 && shape.rank != 3) {
    throw sdk::Error(
        "optimizer " + optimizer_ + ": parameter " + std::string(parameter.name) + " has rank " +
        std::to_string(shape.rank) +
        ", but only matrices [r, c] and banks [B, r, c] can be orthogonalised; give it to adamw or sgd");
  }
  return sdk::with_dtype(shape, config_.compute_dtype == "bf16" ? MLG_BF16 : MLG_F32);
}

double tall_scale(const sdk::Recorder& recorder, const sdk::Parameter& parameter) {
  const mlg_tensor shape = recorder.describe(parameter.master);
  const auto rows = static_cast<double>(shape.shape[shape.rank - 2]);
  const auto columns = static_cast<double>(shape.shape[shape.rank - 1]);
  return std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace mulligan::optimizers

#include "framework/step/gradient_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/graph/graph.h"
#include "framework/step/step_plan.h"

namespace mulligan {
namespace {

// Parts of a tensor that kernels read begin this many elements apart.
constexpr std::int64_t apart = 64;
constexpr const char* keys = "noise/keys";       // [parameters * apart] i32: four words of each
constexpr const char* moment = "noise/step";     // [1] i32
constexpr const char* strength = "noise/sigma";  // [1] f32
constexpr const char* sums =
    "noise/sums";  // [(2 + parameters) * apart] f64: squares of noise, gradients, and of each

const TensorType one_f64(MLG_F64, {1});
const TensorType key_type(MLG_I32, {4});

std::int64_t count_of(const std::vector<PlannedParameter>& parameters) {
  return static_cast<std::int64_t>(parameters.size());
}

}  // namespace

GradientNoise::GradientNoise(std::int64_t seed, const std::vector<NoiseMode>& modes, Backend& backend,
                             const std::vector<PlannedParameter>& parameters, TensorStore& store)
    : seed_(seed), parameters_(parameters), store_(store) {
  const std::int64_t count = count_of(parameters);
  store.create(keys, TensorType(MLG_I32, {count * apart}));
  store.create(moment, TensorType(MLG_I32, {1}));
  store.create(strength, TensorType(MLG_F32, {1}));
  store.create(sums, TensorType(MLG_F64, {(2 + count) * apart}));
  for (const NoiseMode mode : modes) {
    Graph graph = build(mode);
    store.create_externals(graph);
    modes_.push_back({mode, std::make_unique<Program>(backend, std::move(graph), "gradient noise")});
  }
}

Graph GradientNoise::build(NoiseMode mode) const {
  Graph graph;
  const std::int64_t count = count_of(parameters_);
  const Value all_keys = graph.external(keys, TensorType(MLG_I32, {count * apart}));
  const Value step = graph.external(moment, TensorType(MLG_I32, {1}));
  const Value sigma = graph.external(strength, TensorType(MLG_F32, {1}));
  const Value squares = graph.external(sums, TensorType(MLG_F64, {(2 + count) * apart}));
  const auto sum = [&](std::int64_t index) { return graph.view(squares, index * apart, one_f64); };
  for (std::int64_t i = 0; i < count; ++i) {
    const PlannedParameter& parameter = parameters_[static_cast<std::size_t>(i)];
    const TensorType& type = parameter.layout.spec.type;
    const Value gradient = graph.external(gradient_name(parameter.name()), type);
    const Value noise = graph.scratch(type, "noise");
    graph.call("sum_squares_f64", {gradient, sum(1)});
    if (mode == NoiseMode::norm) graph.call("sum_squares_f64", {gradient, sum(2 + i)});
    graph.call("gradient_noise",
               {gradient, graph.view(all_keys, i * apart, key_type), step, sigma,
                mode == NoiseMode::norm ? sum(2 + i) : Value{}, noise},
               {{"mode", static_cast<double>(mode)}});
    graph.call("sum_squares_f64", {noise, sum(0)});
    graph.call("axpby", {noise, Value{}, gradient}, {{"alpha", 1}, {"beta", 0}, {"accumulate_y", 1}});
  }
  return graph;
}

std::vector<Program*> GradientNoise::programs() const {
  std::vector<Program*> programs;
  for (const ModeProgram& made : modes_) programs.push_back(made.program.get());
  return programs;
}

void GradientNoise::prepare() {
  std::vector<std::int32_t> words(static_cast<std::size_t>(count_of(parameters_) * apart));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::array<std::int32_t, 4> key =
        PhiloxStream(static_cast<std::uint64_t>(seed_), fmt::format("noise/{}", parameters_[i].name())).key();
    std::ranges::copy(key, words.begin() + static_cast<std::ptrdiff_t>(i * apart));
  }
  store_.upload(keys, words);
}

void GradientNoise::add(NoiseMode mode, double sigma, std::int64_t step) {
  const auto made = std::ranges::find(modes_, mode, &ModeProgram::mode);
  added_ = made != modes_.end();
  if (!added_) return;
  const std::array<std::int32_t, 1> at{static_cast<std::int32_t>(step)};
  const std::array<float, 1> by{static_cast<float>(sigma)};
  store_.upload(moment, std::as_bytes(std::span(at)));
  store_.upload(strength, std::as_bytes(std::span(by)));
  store_.zero(sums);
  made->program->run();
}

std::optional<double> GradientNoise::ratio() const {
  if (!added_) return {};
  const std::vector<double> squares = store_.download_as<double>(sums);
  const double gradient = squares[apart];
  if (!(gradient > 0)) return {};
  return std::sqrt(squares[0] / gradient);
}

double noise_sigma(const NoiseConfig& noise, const Phase& phase, std::int64_t step, double budget_fraction) {
  const bool within = budget_fraction >= noise.from_fraction &&
                      (noise.until_fraction >= 1 || budget_fraction < noise.until_fraction);
  const double sigma = noise.sigma * phase.noise_factor;
  if (phase.noise == NoiseMode::off || !within) return 0;
  switch (phase.noise) {
    case NoiseMode::bf16_round:
    case NoiseMode::bf16_stochastic:
      return phase.noise_factor > 0 ? 1 : 0;
    case NoiseMode::anneal:
      return std::sqrt(sigma / std::pow(1.0 + static_cast<double>(step), 0.55));
    default:
      return sigma;
  }
}

std::unique_ptr<GradientNoise> make_gradient_noise(const RunConfig& config, const std::string& section,
                                                   Backend& backend,
                                                   const std::vector<PlannedParameter>& parameters,
                                                   TensorStore& store, int slices) {
  std::vector<NoiseMode> modes;
  for (const Phase& phase : config.phases) {
    const bool here = section.empty() || backend_section(phase) == section;
    if (!here || phase.noise == NoiseMode::off || std::ranges::find(modes, phase.noise) != modes.end())
      continue;
    modes.push_back(phase.noise);
  }
  if (modes.empty()) return nullptr;
  for (const PlannedParameter& parameter : parameters) {
    if (!parameter.is_cut(slices)) continue;
    throw config_error(
        "[noise]: of '{}' each of {} ranks has a slice of the gradient only, and noise is added to whole "
        "gradients; set "
        "parallel.strategy = \"ddp\", or noise.mode = \"off\".",
        parameter.name(), slices);
  }
  return std::make_unique<GradientNoise>(config.run.seed, modes, backend, parameters, store);
}

}  // namespace mulligan

#include "framework/step/gradient_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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
// [(2 + parameters) * apart] f64 each: squares of the noise, of the gradients, and of each gradient. Of
// slices they are this rank's until they are summed over ranks.
constexpr const char* sums = "noise/sums";
constexpr const char* slice_sums = "noise/slice_sums";
// The squares of slices' noise stand apart from the other sums: they are summed over ranks later.
constexpr const char* slice_noise = "noise/slice_noise";  // [1] f64

const TensorType scalar_f64(MLG_F64, {1});
const TensorType key_type(MLG_I32, {4});

std::int64_t count_of(const std::vector<PlannedParameter>& parameters) {
  return static_cast<std::int64_t>(parameters.size());
}

}  // namespace

GradientNoise::GradientNoise(std::int64_t seed, const std::vector<NoiseMode>& modes,
                             const std::vector<PlannedParameter>& parameters, TensorStore& store,
                             Communicator& communicator, int slices)
    : seed_(seed), parameters_(parameters), store_(store), communicator_(communicator), slices_(slices) {
  const std::int64_t count = count_of(parameters);
  store.create(keys, TensorType(MLG_I32, {count * apart}));
  store.create(moment, TensorType(MLG_I32, {1}));
  store.create(strength, TensorType(MLG_F32, {1}));
  store.create(sums, TensorType(MLG_F64, {(2 + count) * apart}));
  if (any_cut()) {
    store.create(slice_sums, TensorType(MLG_F64, {(2 + count) * apart}));
    store.create(slice_noise, scalar_f64);
  }
  for (const NoiseMode mode : modes) {
    modes_.push_back({mode, any_cut() ? make_program(store, build_measure(), "gradient noise") : nullptr,
                      make_program(store, build_add(mode), "gradient noise")});
  }
}

bool GradientNoise::any_cut() const {
  return std::ranges::any_of(parameters_,
                             [this](const PlannedParameter& p) { return p.is_gathered(slices_); });
}

GradientNoise::Part GradientNoise::part_of(const PlannedParameter& parameter) const {
  const TensorType& whole = parameter.layout.spec.type;
  if (!parameter.is_gathered(slices_)) return {gradient_name(parameter.name()), whole, whole, 0, false};
  if (parameter.owner(slices_) != PlannedParameter::everybody) {
    const bool mine = parameter.is_updated_by(communicator_.rank(), slices_);
    return {gradient_name(parameter.name()), whole, mine ? whole : TensorType(whole.dtype, {0}), 0, true};
  }
  const TensorType slice = parameter.updated_type(slices_);
  const std::int64_t first = communicator_.rank() * slice.elements();
  const std::int64_t here = std::clamp<std::int64_t>(whole.elements() - first, 0, slice.elements());
  return {parameter.updated_gradient(slices_), slice, TensorType(slice.dtype, {here}), first, true};
}

Value GradientNoise::sum(Graph& graph, bool cut, std::int64_t index) const {
  const TensorType all(MLG_F64, {(2 + count_of(parameters_)) * apart});
  return graph.view(graph.external(cut ? slice_sums : sums, all), index * apart, scalar_f64);
}

Graph GradientNoise::build_measure() const {
  Graph graph;
  for (std::int64_t i = 0; i < count_of(parameters_); ++i) {
    const Part part = part_of(parameters_[static_cast<std::size_t>(i)]);
    if (!part.cut || part.type.elements() == 0) continue;
    const Value gradient = graph.view(graph.external(part.gradient, part.stored), 0, part.type);
    graph.call("sum_squares_f64", {gradient, sum(graph, true, 2 + i)});
  }
  return graph;
}

Graph GradientNoise::build_add(NoiseMode mode) const {
  Graph graph;
  const std::int64_t count = count_of(parameters_);
  const Value all_keys = graph.external(keys, TensorType(MLG_I32, {count * apart}));
  const Value step = graph.external(moment, TensorType(MLG_I32, {1}));
  const Value sigma = graph.external(strength, TensorType(MLG_F32, {1}));
  for (std::int64_t i = 0; i < count; ++i) {
    const PlannedParameter& parameter = parameters_[static_cast<std::size_t>(i)];
    if (!parameter.trained()) continue;
    const Part part = part_of(parameter);
    const Value square = sum(graph, part.cut, 2 + i);
    if (part.cut) graph.call("sum_f64", {square, sum(graph, false, 1)});
    if (part.type.elements() == 0) continue;
    const Value stored = graph.external(part.gradient, part.stored);
    const Value gradient = part.cut ? graph.view(stored, 0, part.type) : stored;
    const Value noise = graph.scratch(part.type, "noise");
    if (!part.cut) {
      graph.call("sum_squares_f64", {gradient, square});
      graph.call("sum_f64", {square, sum(graph, false, 1)});
    }
    graph.call("gradient_noise",
               {gradient, graph.view(all_keys, i * apart, key_type), step, sigma, square, noise},
               {{"mode", static_cast<double>(mode)},
                {"first", static_cast<double>(part.first)},
                {"elements", static_cast<double>(parameter.layout.spec.type.elements())}});
    graph.call("sum_squares_f64",
               {noise, part.cut ? graph.external(slice_noise, scalar_f64) : sum(graph, false, 0)});
    graph.call("axpby", {noise, Value{}, gradient}, {{"alpha", 1}, {"beta", 0}, {"accumulate_y", 1}});
  }
  return graph;
}

std::vector<Program*> GradientNoise::programs() const {
  std::vector<Program*> programs;
  for (const ModePrograms& made : modes_) {
    if (made.measure) programs.push_back(made.measure.get());
    programs.push_back(made.add.get());
  }
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
  if (!any_cut()) return;
  gradients_of_all_ = communicator_.prepare(
      store_, {{Collective::all_reduce, slice_sums, slice_sums, store_.type(slice_sums).elements()}});
  noise_of_all_ = communicator_.prepare(store_, {{Collective::all_reduce, slice_noise, slice_noise, 1}});
}

void GradientNoise::add(NoiseMode mode, double sigma, std::int64_t step) {
  const auto made = std::ranges::find(modes_, mode, &ModePrograms::mode);
  added_ = made != modes_.end();
  if (!added_) return;
  const std::array<std::int32_t, 1> at{static_cast<std::int32_t>(step)};
  const std::array<float, 1> by{static_cast<float>(sigma)};
  store_.upload(moment, std::as_bytes(std::span(at)));
  store_.upload(strength, std::as_bytes(std::span(by)));
  store_.zero(sums);
  if (made->measure) {
    store_.zero(slice_sums);
    store_.zero(slice_noise);
    made->measure->run();
    gradients_of_all_->run();
  }
  made->add->run();
  if (!noise_of_all_) return;
  noise_of_all_->run();
}

std::optional<double> GradientNoise::ratio() const {
  if (!added_) return {};
  communicator_.finish(store_);
  const std::vector<double> squares = store_.download_as<double>(sums);
  const double gradient = squares[apart];
  if (!(gradient > 0)) return {};
  const double of_slices = noise_of_all_ ? store_.download_as<double>(slice_noise)[0] : 0.0;
  return std::sqrt((squares[0] + of_slices) / gradient);
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
                                                   const std::vector<PlannedParameter>& parameters,
                                                   TensorStore& store, Communicator& communicator,
                                                   int slices) {
  std::vector<NoiseMode> modes;
  for (const Phase& phase : config.phases) {
    const bool here = section.empty() || backend_section(phase) == section;
    if (!here || phase.noise == NoiseMode::off || std::ranges::find(modes, phase.noise) != modes.end())
      continue;
    modes.push_back(phase.noise);
  }
  if (modes.empty()) return nullptr;
  return std::make_unique<GradientNoise>(config.run.seed, modes, parameters, store, communicator, slices);
}

}  // namespace mulligan

#include "framework/step/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/data/masking.h"
#include "framework/model/elements/masking/config.h"
#include "framework/model/initialise.h"
#include "framework/run/training_data.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/loss_scaler.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

TrainingEngine::TrainingEngine(const RunConfig& config, const std::string& section, const RunPlugins& plugins,
                               const std::vector<PlannedParameter>& parameters, OptimizerGroups& groups,
                               Communicator& communicator, std::int64_t ring)
    : config_(config),
      parameters_(parameters),
      groups_(groups),
      communicator_(communicator),
      store_(*plugins.backend),
      inputs_(step_tensor::batch, tokens_per_pass(config)),
      parts_({tokens_per_micro_batch(config.train), config.train.micro_batch_parts, tokens_per_pass(config),
              longest_segment(config), config.data.documents != DataDocuments::joined}),
      ring_(ring),
      micro_batches_(config.train.micro_batches / communicator.world_size()),
      world_size_(communicator.world_size()),
      set_scale_(config.loss_scale.initial) {
  const int world_size = communicator.world_size();
  if (config.train.micro_batches % world_size != 0) {
    throw config_error(
        "train.micro_batches is {}, which the {} ranks do not divide; choose a multiple of them.",
        config.train.micro_batches, world_size);
  }
  for (const Phase& phase : config.phases) {
    if (phase.micro_batches % world_size == 0) continue;
    throw config_error(
        "phase.micro_batches is {} in the phase '{}', which the {} ranks do not divide; choose a multiple of "
        "them.",
        phase.micro_batches, phase.name, world_size);
  }
  for (const Phase& phase : config.phases) {
    if ((world_size == 1 && !clips_each_micro_batch(config.train)) || !clips_before_reduction(config.train) ||
        !LossScaler::scales(config.loss_scale, phase)) {
      continue;
    }
    throw config_error(
        "the phase '{}' has a scale of the loss ([loss_scale]), and train.clip_order clips before the sum over ranks or "
        "micro-batches, where nothing sees whether that is finite; set train.clip_order = \"after_reduction\".",
        phase.name);
  }
  refuse_two_scored();
  const std::vector<PlannedParameter>& units = groups.units().parameters();
  place_sums();
  for (const PlannedParameter& unit : units) {
    const TensorType& type = unit.layout.spec.type;
    groups.units().place(store_, master_name(unit.name()), type.as(unit.layout.master));
    if (!unit.trained()) {
      if (has_average(unit)) store_.create(average_name(unit.name()), type);
      continue;
    }
    groups.units().place(store_, gradient_name(unit.name()), type);
    gradients_.push_back(gradient_name(unit.name()));
    const bool padded = unit.is_cut(world_size) && type.dims[0] % world_size != 0;
    if (padded) gradients_.push_back(unit.updated_gradient(world_size));  // an optimiser may write there
  }
  plan_ = std::make_unique<StepPlan>(config, section, plugins, parameters, groups, world_size,
                                     communicator.rank(), ring, store_);
  exchange_ = std::make_unique<GradientExchange>(config, groups.units(), store_, communicator);
  if (clips_each_micro_batch(config.train) && !exchange_->in_a_tree() &&
      config.train.micro_batches > world_size)
    clipped_ = std::make_unique<GradientLevel>(units, store_, 0);
  overlap_reductions();
  state_exchange_ = std::make_unique<StateExchange>(store_, cut_states(), world_size);
  require_micro_batches();
  noise_ = make_gradient_noise(config, section, parameters, store_, communicator,
                               exchange_->in_a_tree() ? 1 : world_size);
}

void TrainingEngine::refuse_two_scored() const {
  const bool own = std::ranges::any_of(groups_.groups(), [](const OptimizerGroup& group) {
    return group.optimizer->has_evaluation_weights();
  });
  if (own && config_.ema.decay > 0) {
    throw config_error(
        "[ema]: decay is {}, but an optimiser of this run has evaluation weights of its own, and one average "
        "of an average is neither; set ema.decay = 0 or take another optimiser.",
        config_.ema.decay);
  }
  if (own && groups_.wrapped()) {
    throw config_error(
        "[wrapper]: it says what is scored, but an optimiser of this run has evaluation weights of its own; take "
        "another optimiser, or leave [wrapper] out.");
  }
}

// What nothing updates is its own average where averages themselves are scored.
bool TrainingEngine::has_average(const PlannedParameter& parameter) const {
  return config_.ema.decay > 0 && (!groups_.blends() || (parameter.trained() && parameter.averaged));
}

// Where nothing is done to a rank's gradients before they are summed.
void TrainingEngine::overlap_reductions() {
  if (clips_before_reduction(config_.train)) return;
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (!plan_->has(phase) || plan_->find(phase, StepRole::unscale)) continue;
    exchange_->overlap(*plan_->find(phase, StepRole::micro_step));
  }
}

// A phase whose steps cannot be summed is refused before the run begins.
void TrainingEngine::require_micro_batches() const {
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (plan_->has(phase)) require_sum_of(config_.phases[phase].micro_batches);
  }
}

void TrainingEngine::require_sum_of(std::int64_t micro_batches) const {
  if (clips_each_micro_batch(config_.train) && micro_batches != config_.train.micro_batches) {
    throw config_error(
        "a step has {} micro-batches where train.micro_batches is {}, and train.clip_order = \"each_micro_batch\" makes the "
        "mean of as many; take the change out of the phase or schedule, or set another clip_order.",
        micro_batches, config_.train.micro_batches);
  }
  exchange_->require_micro_batches(micro_batches / world_size_);
}

// The sums of a step lie in one tensor, each where kernels like tensors to begin.
void TrainingEngine::place_sums() {
  constexpr std::int64_t apart = 32;
  for (std::size_t group = 0; group < groups_.groups().size(); ++group) {
    group_square_sums_.push_back(group_square_sum_name(group));  // also where it has no parameter
  }
  std::vector<std::string> sums = {step_tensor::loss_sum, step_tensor::square_sum};
  sums.insert(sums.end(), group_square_sums_.begin(), group_square_sums_.end());
  const auto count = static_cast<std::int64_t>(sums.size());
  store_.create(step_tensor::sums, TensorType(MLG_F64, {apart * count}));
  for (std::int64_t i = 0; i < count; ++i) {
    store_.create_part(sums[static_cast<std::size_t>(i)], TensorType(MLG_F64, {1}), step_tensor::sums,
                       apart * i);
  }
}

std::vector<Program*> TrainingEngine::programs() const {
  std::vector<Program*> programs = plan_->programs();
  for (Program* program : exchange_->programs()) programs.push_back(program);
  if (clipped_) programs.push_back(&clipped_->program());
  if (noise_) {
    for (Program* program : noise_->programs()) programs.push_back(program);
  }
  return programs;
}

void TrainingEngine::initialise(std::uint64_t seed) {
  std::vector<ParameterSpec> specs;
  for (const PlannedParameter& parameter : parameters_) specs.push_back(parameter.layout.spec);
  const std::vector<std::vector<float>> drawn =
      config_.init.from.empty() ? initial_values(specs, seed, static_cast<int>(config_.run.threads))
                                : read_initial_weights(config_.init, specs);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const PlannedParameter& parameter = parameters_[i];
    const std::vector<std::byte> master = encode_floats(drawn[i], parameter.layout.master);
    store_.upload(master_name(parameter.name()), master);
    if (groups_.wrapped() && parameter.trained()) store_.upload(rest_name(parameter.name()), master);
    if (has_average(parameter)) upload_average(parameter, decode_weights(master, parameter.layout.master));
  }
  upload_blend(config_.ema.from_step == 0);
  reset_optimizers();
  make_ready();
}

// The initial average, or this rank's slice of it.
void TrainingEngine::upload_average(const PlannedParameter& parameter, std::vector<float> values) {
  const int ranks = average_ranks();
  const auto count = static_cast<std::size_t>(parameter.updated_type(ranks).elements());
  if (parameter.is_cut(ranks)) {
    values.resize(count * static_cast<std::size_t>(ranks));  // with the padding of the last slices
    values.erase(
        values.begin(),
        values.begin() + static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(communicator_.rank())));
    values.resize(count);
  }
  store_.upload(updated_average_name(parameter, ranks), values);
}

// The shares in what is scored; without an average weights at rest have it all.
void TrainingEngine::upload_blend(bool has_begun) {
  if (!store_.contains(step_tensor::blend)) return;
  const double share = has_begun ? config_.ema.blend : 0.0;
  store_.upload(step_tensor::blend,
                std::vector<float>{static_cast<float>(share), static_cast<float>(1 - share)});
}

void TrainingEngine::reset_optimizers() {
  for (const std::string& state : groups_.wrapper_states()) store_.zero(state);
  for (const PlannedParameter& parameter : parameters_) {
    if (!groups_.wrapped() || !parameter.trained()) continue;
    store_.copy(master_name(parameter.name()), rest_name(parameter.name()));
  }
  for (const OptimizerGroup& group : groups_.groups()) {
    for (const std::string& state : group.states) {
      if (store_.contains(state)) store_.zero(state);  // not one of another rank
    }
  }
}

void TrainingEngine::make_ready() {
  const std::int64_t tokens = tokens_per_micro_batch(config_.train);
  loss_weights_.resize(static_cast<std::size_t>(tokens_per_pass(config_)));
  const double hidden = elements::masking::config_of(config_.model).share;
  row_targets_ = hidden > 0 ? chosen_tokens(hidden, tokens) : tokens;
  exchange_->prepare();
  state_exchange_->prepare(communicator_, all_states());
  if (noise_) noise_->prepare();
  std::size_t first = 0;
  while (!plan_->has(first)) ++first;
  enter(first);
}

void TrainingEngine::enter(std::size_t phase) {
  phase_ = phase;
  weigh_losses(micro_batches_);
  inputs_.upload_rope(store_, config_.model, rotary_positions(config_));
  refresh_copies();
}

void TrainingEngine::refresh_copies() {
  plan_->find(phase_, StepRole::refresh)->run();
}

void TrainingEngine::refresh_scored_copies() {
  const ComputeTypes scored = scored_types(config_);
  if (compute_types(config_.phases[phase_]) != scored) plan_->refresh(scored).run();
}

void TrainingEngine::expect_segments(std::int64_t longest) {
  show_possible_segments(tokens_per_pass(config_), longest, [this](std::span<const std::int32_t> boundaries) {
    inputs_.upload_boundaries(store_, boundaries);
  });
}

double TrainingEngine::probe_loss(const Batch& row) {
  const StateSnapshot averages(store_, exchange_->averages_in_gradients());
  store_.zero(step_tensor::loss_sum);
  run_row(row, false);
  averages.restore();
  return store_.download_as<double>(step_tensor::loss_sum)[0] / static_cast<double>(row.target_count());
}

// The sum over ranks of their gradients is that of the mean over all targets of the step, or of the sum. Where each
// clips its own first, or each micro-batch's, that is the gradient of the mean over its own targets, and the clip
// divides it by their number.
void TrainingEngine::weigh_losses(std::int64_t micro_batches) {
  micro_batches_ = micro_batches;
  const std::int64_t ranks = clips_before_reduction(config_.train) ? 1 : world_size_;
  const std::int64_t targets = config_.train.loss_reduction == LossReduction::sum ? 1
                               : clips_each_micro_batch(config_.train)            ? row_targets_
                                                                       : row_targets_ * micro_batches * ranks;
  weighed_scale_ = loss_scale();
  std::ranges::fill(loss_weights_, static_cast<float>(weighed_scale_ / static_cast<double>(targets)));
  store_.upload(step_tensor::loss_weight, loss_weights_);
  if (!scaled()) return;
  const std::array<float, 1> factor{static_cast<float>(1.0 / weighed_scale_)};
  store_.upload(step_tensor::unscale, std::as_bytes(std::span(factor)));
}

std::int64_t TrainingEngine::coming_micro_batches() const {
  const double factor = groups_.batch_factor();
  require_arena_batch(config_, factor);
  const double wanted = std::round(factor * static_cast<double>(config_.phases[phase_].micro_batches));
  if (wanted < 1 || wanted > 1e6) {
    throw config_error(
        "[schedule]: it asks for {} times the batch, which is {} of the {} micro-batches of a step; raise "
        "train.micro_batches, or correct the schedule's keys.",
        factor, wanted, config_.phases[phase_].micro_batches);
  }
  const auto micro_batches = static_cast<std::int64_t>(wanted);
  if (micro_batches % world_size_ != 0) {
    throw config_error(
        "[schedule]: it asks for {} times the batch, which is {} micro-batches, and the {} ranks do not "
        "divide those; raise train.micro_batches, or correct the schedule's keys.",
        factor, micro_batches, world_size_);
  }
  require_sum_of(micro_batches);
  return micro_batches;
}

void TrainingEngine::refresh_evaluation_weights() {
  Program* evaluation = plan_->find(phase_, StepRole::evaluation_weights);
  if (!evaluation) return;
  evaluation->run();
  exchange_->gather_evaluation();
}

bool TrainingEngine::step(std::int64_t number, Prefetcher& rows) {
  rows.set_group_spans(coming_micro_batches());
  return step(number, [&rows]() -> const Batch& { return rows.next(); });
}

// Forward and backward, part by part.
void TrainingEngine::run_row(const Batch& row, bool reduce_after) {
  Program& pass = *plan_->find(phase_, StepRole::micro_step);
  const std::span<const Batch> parts = parts_.of(row);
  for (const Batch& part : parts) {
    if (part.tokens.empty()) continue;
    inputs_.upload(store_, part.tokens, part.targets, part.cu_seqlens);
    if (reduce_after && &part == &parts.back()) {
      exchange_->run_and_reduce(pass);
    } else {
      pass.run();
    }
  }
}

bool TrainingEngine::step(std::int64_t number, const std::function<const Batch&()>& next_row) {
  const std::int64_t micro_batches = coming_micro_batches() / world_size_;
  if (micro_batches != micro_batches_ || weighed_scale_ != loss_scale()) weigh_losses(micro_batches);
  zero_sums();
  const bool overlaps = exchange_->overlaps(*plan_->find(phase_, StepRole::micro_step)) && !scaled();
  const bool clip_each = clips_each_micro_batch(config_.train);
  Program& clip = *plan_->find(phase_, StepRole::clip);
  for (std::int64_t micro = 0; micro < micro_batches_; ++micro) {
    const Batch& row = next_row();
    if (micro > 0 && (exchange_->in_a_tree() || clip_each)) zero_sums();
    run_row(row, overlaps && micro + 1 == micro_batches_);
    if (clip_each) clip.run();
    if (exchange_->in_a_tree()) {
      exchange_->add_leaf(micro, micro_batches_);
    } else if (clip_each) {
      if (micro > 0) clipped_->add();
      if (micro + 1 < micro_batches_) clipped_->keep();
    }
  }

  const bool clip_first = clips_before_reduction(config_.train);
  Program* unscale = plan_->find(phase_, StepRole::unscale);
  if (unscale && !exchange_->in_a_tree()) unscale->run();
  if (clip_first && !clip_each) clip.run();
  if (!overlaps) exchange_->reduce();
  if (unscale && exchange_->in_a_tree()) unscale->run();
  add_noise(NoiseOrder::before_clip);
  if (exchange_->measures()) exchange_->measure();
  if (!clip_first) clip.run();
  if (unscale && !gradient_is_finite()) return false;
  add_noise(NoiseOrder::after_clip);
  update(number);
  return true;
}

// By its norm, which the clip has measured over all ranks.
bool TrainingEngine::gradient_is_finite() {
  communicator_.finish(store_);
  return std::isfinite(store_.download_as<float>(step_tensor::gradient_norm)[0]);
}

void TrainingEngine::add_noise(NoiseOrder order) {
  const NoiseMode mode = config_.phases[phase_].noise;
  if (!noise_ || order != config_.noise.order) return;
  noise_->add(noise_sigma_ > 0 ? mode : NoiseMode::off, noise_sigma_, noise_step_);
}

std::optional<double> TrainingEngine::noise_ratio() const {
  return noise_ ? noise_->ratio() : std::nullopt;
}

void TrainingEngine::zero_sums() {
  for (const std::string& gradient : gradients_) store_.zero(gradient);
  store_.zero(step_tensor::sums);
}

// Cut parameters first, one by one: the slices of one are gathered while the next one is updated.
void TrainingEngine::update(std::int64_t number) {
  ++updates_begun_;
  groups_.upload_scalars(store_, number);
  Program& update = *plan_->find(phase_, StepRole::update);
  for (const UpdatePart& part : groups_.update_parts()) {
    update.run_range(part.begin, part.end);
    if (part.parameter) exchange_->gather(*part.parameter);
  }
  exchange_->finish_gathering();
  follow_up(number);
}

void TrainingEngine::follow_up(std::int64_t number) {
  Program& program = *plan_->find(phase_, StepRole::follow_up);
  const AverageStep average = average_step(config_.ema, number);
  const auto [averages, begin] = plan_->follow_up_parts(phase_);
  program.run_range(0, average == AverageStep::follows ? begin : averages);
  if (average != AverageStep::begins) return;
  program.run_range(begin, program.graph().calls().size());
  upload_blend(true);
}

void TrainingEngine::record_metrics(std::int64_t index) {
  const std::array<std::int64_t, 1> value{index};
  store_.upload(step_tensor::ring_index, std::as_bytes(std::span(value)));
  plan_->find(phase_, StepRole::record)->run();
}

std::vector<StepMetrics> TrainingEngine::read_metrics(std::int64_t first, std::int64_t last) {
  if (last - first > ring_) throw std::logic_error("metrics were overwritten before they were read");
  communicator_.finish(store_);
  const auto losses = store_.download_as<double>(step_tensor::loss_ring);
  const auto norms = store_.download_as<double>(step_tensor::norm_ring);
  std::vector<StepMetrics> metrics;
  for (std::int64_t index = first; index < last; ++index) {
    const auto place = static_cast<std::size_t>(index % ring_);
    metrics.push_back({losses[place], norms[place]});
  }
  return metrics;
}

std::vector<double> TrainingEngine::group_gradient_norms() const {
  std::vector<double> norms;
  for (const std::string& sum : group_square_sums_) {
    norms.push_back(std::sqrt(store_.download_as<double>(sum)[0]));
  }
  return norms;
}

std::vector<std::string> TrainingEngine::state_tensors() const {
  std::vector<std::string> names = all_states();
  std::erase_if(names, [this](const std::string& name) { return !store_.contains(name); });
  return names;
}

std::vector<std::string> TrainingEngine::all_states() const {
  std::vector<std::string> names;
  for (const PlannedParameter& parameter : parameters_) names.push_back(master_name(parameter.name()));
  for (const OptimizerGroup& group : groups_.groups()) {
    names.insert(names.end(), group.states.begin(), group.states.end());
  }
  names.insert(names.end(), groups_.wrapper_states().begin(), groups_.wrapper_states().end());
  for (const PlannedParameter& parameter : parameters_) {
    if (groups_.wrapped() && parameter.trained()) names.push_back(rest_name(parameter.name()));
    if (has_average(parameter)) names.push_back(updated_average_name(parameter, average_ranks()));
  }
  if (store_.contains(step_tensor::blend)) names.emplace_back(step_tensor::blend);
  for (const PlannedParameter& parameter : parameters_) {
    if (has_evaluation_weights(parameter, groups_)) names.push_back(evaluation_name(parameter.name()));
  }
  return names;
}

std::vector<CutState> TrainingEngine::cut_states() const {
  std::vector<CutState> cut;
  for (const auto& [state, kept] : groups_.cut_states()) cut.push_back({state, state, kept.type, kept.owner});
  for (const PlannedParameter& parameter : parameters_) {
    if (!has_average(parameter) || !parameter.is_cut(average_ranks())) continue;
    cut.push_back({updated_average_name(parameter, world_size_), average_name(parameter.name()),
                   parameter.layout.spec.type});
  }
  return cut;
}

}  // namespace mulligan

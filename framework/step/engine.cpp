#include "framework/step/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/model/initialise.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
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
      inputs_(step_tensor::batch, tokens_per_micro_batch(config.train)),
      ring_(ring),
      micro_batches_(config.train.micro_batches / communicator.world_size()),
      world_size_(communicator.world_size()) {
  const int world_size = communicator.world_size();
  if (config.train.micro_batches % world_size != 0) {
    throw config_error(
        "train.micro_batches is {}, which the {} ranks do not divide; choose a multiple of them.",
        config.train.micro_batches, world_size);
  }
  if (has_evaluation_weights(groups) && config.ema.decay > 0) {
    throw config_error(
        "[ema]: decay is {}, but an optimiser of this run has evaluation weights of its own, and one average "
        "of an average is neither; set ema.decay = 0 or take another optimiser.",
        config.ema.decay);
  }
  plan_ = std::make_unique<StepPlan>(config, section, plugins, parameters, groups, world_size, ring, store_);
  for (std::size_t group = 0; group < groups.groups().size(); ++group) {
    group_square_sums_.push_back(group_square_sum_name(group));
    store_.create(group_square_sums_.back(), TensorType(MLG_F64, {1}));  // also where it has no parameter
  }
  for (const PlannedParameter& parameter : parameters) {
    names_.push_back({master_name(parameter.name()), parameter.updated_master(world_size),
                      gradient_name(parameter.name()), parameter.updated_gradient(world_size),
                      parameter.communication == Communication::sharded});
    // A parameter that no layer order reads still has a gradient (zero) and a master.
    store_.create(names_.back().gradient, parameter.layout.spec.type);
    store_.create(names_.back().master, parameter.layout.spec.type.as(parameter.layout.master));
  }
}

void TrainingEngine::initialise(std::uint64_t seed) {
  for (const PlannedParameter& parameter : parameters_) {
    const std::vector<float> values = initial_values(parameter.layout.spec, seed);
    store_.upload(master_name(parameter.name()), encode_floats(values, parameter.layout.master));
    if (config_.ema.decay > 0) {
      const auto rounded =
          decode_floats(encode_floats(values, parameter.layout.master), parameter.layout.master);
      store_.upload(average_name(parameter.name()), rounded);
    }
  }
  for (const OptimizerGroup& group : groups_.groups()) {
    for (const std::string& state : group.states) store_.zero(state);
  }
  const std::int64_t tokens = tokens_per_micro_batch(config_.train);
  loss_weights_.resize(static_cast<std::size_t>(tokens));
  weigh_losses(micro_batches_);
  prepare_transfers();
  std::size_t first = 0;
  while (!plan_->has(first)) ++first;
  enter(first);
}

void TrainingEngine::prepare_transfers() {
  std::vector<Transfer> reduce, gather;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Names& names = names_[i];
    const std::int64_t count = parameters_[i].updated_type(world_size_).elements();
    if (names.sharded) {
      reduce.push_back({Collective::reduce_scatter, names.gradient, names.updated_gradient, count});
      gather.push_back({Collective::all_gather, names.updated_master, names.master, count});
    } else {
      reduce.push_back({Collective::all_reduce, names.gradient, names.gradient, count});
    }
  }
  reduce.push_back({Collective::all_reduce, step_tensor::loss_sum, step_tensor::loss_sum, 1});
  reduce_gradients_ = communicator_.prepare(store_, std::move(reduce));
  gather_masters_ = communicator_.prepare(store_, std::move(gather));
}

void TrainingEngine::enter(std::size_t phase) {
  phase_ = phase;
  inputs_.upload_rope(store_, config_.model, tokens_per_micro_batch(config_.train),
                      to_dtype(config_.phases[phase].compute_dtype));
  refresh_copies();
}

void TrainingEngine::refresh_scored_copies() {
  const Precision scored = scored_dtype(config_);
  if (config_.phases[phase_].compute_dtype != scored) plan_->refresh(to_dtype(scored)).run();
}

double TrainingEngine::probe_loss(const Batch& row) {
  store_.zero(step_tensor::loss_sum);
  inputs_.upload(store_, row.tokens, row.targets, row.cu_seqlens);
  plan_->find(phase_, StepRole::micro_step)->run();
  return store_.download_as<double>(step_tensor::loss_sum)[0] / static_cast<double>(row.tokens.size());
}

// Every rank's gradient is that of the mean over its own tokens of the step; the ranks' gradients are averaged.
void TrainingEngine::weigh_losses(std::int64_t micro_batches) {
  micro_batches_ = micro_batches;
  const auto tokens = static_cast<std::int64_t>(loss_weights_.size()) * micro_batches;
  std::ranges::fill(loss_weights_, static_cast<float>(1.0 / static_cast<double>(tokens)));
  store_.upload(step_tensor::loss_weight, loss_weights_);
}

std::int64_t TrainingEngine::coming_micro_batches() const {
  const double factor = groups_.batch_factor();
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
  return micro_batches;
}

void TrainingEngine::refresh_evaluation_weights() {
  if (Program* evaluation = plan_->find(phase_, StepRole::evaluation_weights)) evaluation->run();
}

void TrainingEngine::step(std::int64_t number, Prefetcher& rows) {
  const std::int64_t micro_batches = coming_micro_batches() / world_size_;
  if (micro_batches != micro_batches_) weigh_losses(micro_batches);
  for (const Names& names : names_) store_.zero(names.gradient);
  store_.zero(step_tensor::loss_sum);
  store_.zero(step_tensor::square_sum);
  for (const std::string& sum : group_square_sums_) store_.zero(sum);

  rows.set_group_spans(micro_batches * world_size_);
  for (std::int64_t micro = 0; micro < micro_batches_; ++micro) {
    const Batch& row = rows.next();
    inputs_.upload(store_, row.tokens, row.targets, row.cu_seqlens);
    plan_->find(phase_, StepRole::micro_step)->run();
  }

  const bool clip_first = config_.train.clip_order == ClipOrder::before_reduction;
  Program& clip = *plan_->find(phase_, StepRole::clip);
  if (clip_first) clip.run();
  reduce_gradients_->submit();
  reduce_gradients_->join();
  if (!clip_first) clip.run();

  ++updates_begun_;
  groups_.upload_scalars(store_, number);
  plan_->find(phase_, StepRole::update)->run();
  gather_masters_->submit();
  gather_masters_->join();
  plan_->find(phase_, StepRole::follow_up)->run();
}

void TrainingEngine::record_metrics(std::int64_t index) {
  const std::array<std::int64_t, 1> value{index};
  store_.upload(step_tensor::ring_index, std::as_bytes(std::span(value)));
  plan_->find(phase_, StepRole::record)->run();
}

std::vector<StepMetrics> TrainingEngine::read_metrics(std::int64_t first, std::int64_t last) const {
  if (last - first > ring_) throw std::logic_error("metrics were overwritten before they were read");
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
  std::vector<std::string> names;
  for (const Names& parameter : names_) names.push_back(parameter.master);
  for (const OptimizerGroup& group : groups_.groups()) {
    names.insert(names.end(), group.states.begin(), group.states.end());
  }
  if (config_.ema.decay > 0) {
    for (const PlannedParameter& parameter : parameters_) names.push_back(average_name(parameter.name()));
  }
  for (const PlannedParameter& parameter : parameters_) {
    if (has_evaluation_weights(parameter, groups_)) names.push_back(evaluation_name(parameter.name()));
  }
  return names;
}

}  // namespace mulligan

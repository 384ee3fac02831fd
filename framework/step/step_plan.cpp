#include "framework/step/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/step/evaluation_weights.h"
#include "framework/step/loss_scaler.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

const char* role_name(StepRole role) {
  constexpr const char* names[] = {"micro step", "unscale", "clip",    "update",
                                   "follow up",  "record",  "refresh", "evaluation weights"};
  return names[static_cast<std::size_t>(role)];
}

std::string backend_section(const Phase& phase) {
  return phase.backend ? phase.backend->section : "backend";
}

namespace {

// No logit's gradient of a cross entropy is larger than the weight of its token's loss, 1 / the step's targets for the
// mean, of which a step has a micro-batch's or more. E5M2 ends at 57,344 and has 30 binades below: two of
// them are left to losses that add to it.
double fp8_gradient_scale(const TrainConfig& train) {
  const double weight = train.loss_reduction == LossReduction::sum
                            ? 1.0
                            : 1.0 / static_cast<double>(tokens_per_micro_batch(train));
  return std::exp2(std::ceil(std::log2(4 * weight / 57344)));
}

bool runs_on(const Phase& phase, const std::string& section) {
  return section.empty() || backend_section(phase) == section;
}

}  // namespace

StepPlan::StepPlan(const RunConfig& config, const std::string& section, const RunPlugins& plugins,
                   const std::vector<PlannedParameter>& parameters, OptimizerGroups& groups, int world_size,
                   int rank, std::int64_t ring, TensorStore& store)
    : config_(config),
      plugins_(plugins),
      parameters_(parameters),
      groups_(groups),
      world_size_(world_size),
      rank_(rank),
      store_(store) {
  // Micro-steps first: the largest programs fail soonest.
  std::vector<Program*> micro_steps;
  for (const Phase& phase : config.phases) {
    micro_steps.push_back(runs_on(phase, section) ? micro_step(phase.layer_order, compute_types(phase))
                                                  : nullptr);
  }
  const std::vector<PlannedParameter>& units = groups.units().parameters();
  ClipScope scope{world_size, rank, false, 1, {}};
  if (clips_before_reduction(config.train)) {
    // The sum over ranks, or micro-batches, of what was clipped is then their mean.
    const bool each = clips_each_micro_batch(config.train);
    scope.factor = 1.0 / static_cast<double>(each ? config.train.micro_batches : world_size);
  } else {
    scope.slices = config.run.determinism != Determinism::world;
  }
  // What is clipped before it is summed over ranks must be scaled before, too.
  // Noise that comes after the clip is added to gradients that are scaled.
  const bool noise_follows =
      config.noise.order == NoiseOrder::after_clip &&
      std::ranges::any_of(config.phases, [](const Phase& phase) { return phase.noise != NoiseMode::off; });
  scales_in_update_ =
      config.train.clip_norm > 0 && !noise_follows &&
      (!clips_before_reduction(config.train) || (world_size == 1 && !clips_each_micro_batch(config.train)));
  for (std::size_t i = 0; i < config.optimizers.size(); ++i) {
    scope.scaled_by_update.push_back(scales_in_update_ && groups.scales_gradients(i));
  }
  Program* clip = add(build_clip(units, config.train.clip_norm, scope), role_name(StepRole::clip));
  for (const Phase& phase : config.phases) {
    if (runs_on(phase, section)) copies(compute_types(phase));
  }
  copies(scored_types(config));
  Program* record = add(build_record(ring), role_name(StepRole::record));
  Program *evaluation = nullptr, *unscale = nullptr;
  if (has_evaluation_weights(groups)) {
    evaluation = add(build_evaluation_weights(config, units, groups, world_size),
                     role_name(StepRole::evaluation_weights));
  }
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    std::vector<PlannedStep>& steps = phases_.emplace_back();
    if (micro_steps[i] == nullptr) continue;
    const Copies& copied = copies(compute_types(config.phases[i]));
    const std::int64_t rows = config.phases[i].micro_batches / world_size;
    steps = {{StepRole::micro_step, rows * config.train.micro_batch_parts, micro_steps[i]}};
    if (LossScaler::scales(config.loss_scale, config.phases[i])) {
      if (!unscale) unscale = add(build_unscale(units), role_name(StepRole::unscale));
      steps.push_back({StepRole::unscale, 1, unscale});
    }
    const std::int64_t clips = clips_each_micro_batch(config.train) ? rows : 1;
    for (const PlannedStep& step : {PlannedStep{StepRole::clip, clips, clip},
                                    {StepRole::update, 1, copied.update},
                                    {StepRole::follow_up, 1, copied.follow_up},
                                    {StepRole::record, 0, record},
                                    {StepRole::refresh, 0, copied.refresh}}) {
      steps.push_back(step);
    }
    if (evaluation) steps.push_back({StepRole::evaluation_weights, 0, evaluation});
  }
}

Program* StepPlan::find(std::size_t phase, StepRole role) const {
  const auto found = std::ranges::find(phases_[phase], role, &PlannedStep::role);
  return found == phases_[phase].end() ? nullptr : found->program;
}

Program& StepPlan::refresh(ComputeTypes compute) {
  return *copies(compute).refresh;
}

Program* StepPlan::add(Graph graph, std::string name) {
  for (const auto& [name, type] : external_types(graph)) groups_.units().place(store_, name, type);
  owned_.push_back(std::make_unique<Program>(*plugins_.backend, std::move(graph), std::move(name)));
  programs_.push_back(owned_.back().get());
  return programs_.back();
}

Program* StepPlan::micro_step(LayerOrderKind order, ComputeTypes compute) {
  for (const MicroStep& made : micro_steps_) {
    if (made.order == order && made.compute == compute) return made.program;
  }
  // The name is for people: tables of memory and of a profile.
  std::string name = role_name(StepRole::micro_step);
  if (order == LayerOrderKind::looped) name += ", looped";
  if (const ComputeTypes scored = scored_types(config_); compute != scored) {
    name += fmt::format(", {}", dtype_name(compute.activations));
    if (compute.projections != compute.activations) {
      name += fmt::format(" with projections in {}", dtype_name(compute.projections));
    }
  }
  MicroBatch batch{tokens_per_pass(config_), rotary_positions(config_)};
  if (config_.train.fp8_head) batch.fp8_gradient_scale = fp8_gradient_scale(config_.train);
  Program* program = add(build_micro_step(config_.model, with_compute_dtype(parameters_, compute),
                                          *plugins_.loss, batch, order, FusedKernels(*plugins_.backend)),
                         std::move(name));
  micro_steps_.push_back({order, compute, program});
  return program;
}

const StepPlan::Copies& StepPlan::copies(ComputeTypes compute) {
  const auto found = std::ranges::find(copies_, compute, &Copies::compute);
  if (found != copies_.end()) return *found;
  const UpdateExtras extras{scales_in_update_, config_.ema.decay, compute};
  Program* update = add(groups_.record_update(extras, world_size_, rank_), role_name(StepRole::update));
  const std::vector<PlannedParameter> units = with_compute_dtype(groups_.units().parameters(), compute);
  std::vector<PlannedParameter> left = units;
  // What nothing updates stays as it was refreshed, and is its own average.
  std::erase_if(left, [this](const PlannedParameter& unit) {
    return !unit.trained() || groups_.makes_copies(unit, world_size_);
  });
  // What is made of weights at rest is made of whole ones.
  FollowUp built = build_follow_up(groups_.record_wrapper(), left, config_.ema,
                                   groups_.blends() ? 1 : world_size_, groups_.wrapped());
  const FollowUpParts parts = built;
  Program* follow_up = add(std::move(built.graph), role_name(StepRole::follow_up));
  Program* refresh = add(build_refresh(units), role_name(StepRole::refresh));
  return copies_.emplace_back(Copies{compute, update, refresh, follow_up, parts});
}

}  // namespace mulligan

// TrainingEngine: the device side of training. Owns the tensors and programs of a run and performs one step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/prefetcher.h"
#include "framework/data/segments.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/ranks/communicator.h"
#include "framework/step/gradient_exchange.h"
#include "framework/step/gradient_noise.h"
#include "framework/step/optimizer_groups.h"
#include "framework/step/snapshot.h"
#include "framework/step/step_plan.h"

namespace mulligan {

// What one step left.
struct StepMetrics {
  double loss_sum_nats = 0;  // over all tokens of the step, all ranks
  double gradient_norm = 0;  // before clipping
};

class TrainingEngine {
 public:
  // Builds and prepares every program of the phases on the backend of `section` (StepPlan); allocates nothing
  // but the tensors. All references must outlive this object. `ring` is how many steps' metrics are kept on
  // the device. Throws Error.
  TrainingEngine(const RunConfig& config, const std::string& section, const RunPlugins& plugins,
                 const std::vector<PlannedParameter>& parameters, OptimizerGroups& groups,
                 Communicator& communicator, std::int64_t ring);

  // Programs that must be bound (SharedArena) before initialise() or step().
  std::vector<Program*> programs() const;
  const StepPlan& plan() const { return *plan_; }
  TensorStore& store() { return store_; }

  // Initial weights from `seed`, averages equal to them, empty optimiser states; enters the first phase that
  // runs here.
  void initialise(std::uint64_t seed);
  // The same but for the values: steps then work on what the memory holds, as where nothing is computed.
  void make_ready();
  // From now on steps are those of this phase, which runs here. Updates input tables and compute copies.
  void enter(std::size_t phase);
  // Brings the compute copies of the phase up to date after the masters were set from outside.
  void refresh_copies();
  // Brings the copies that scores read up to date, where they are not those of the phase.
  void refresh_scored_copies();

  // Micro-batches of the coming step over all ranks: train.micro_batches times the schedules' batch factor,
  // rounded to whole ones. Throws config_error where less than one is left, or the ranks do not divide them.
  std::int64_t coming_micro_batches() const;

  // One optimiser step of the phase, number `number` (from 1) since the optimisers' states were empty, on
  // this rank's next micro-batches; the groups' rates must be set. Only enqueues work: it neither allocates
  // nor reads anything back. In a phase with a scale of the loss it waits for the gradient's norm: where that
  // is not finite it returns false, on all ranks alike, and nothing was updated.
  bool step(std::int64_t number, Prefetcher& rows);
  // The same on rows that `next_row` gives, one per micro-batch of this rank.
  bool step(std::int64_t number, const std::function<const Batch&()>& next_row);
  // The scale of the loss in the coming steps of a phase that has one (loss_scaler.h); the configuration's
  // first one until it is set.
  void set_loss_scale(double scale) { set_scale_ = scale; }
  // The noise of the coming steps: its strength (noise_sigma; 0 = none), drawn for the updates done, `step`.
  void set_noise(double sigma, std::int64_t step) { noise_sigma_ = sigma, noise_step_ = step; }
  // The norm of the noise of the last step over that of the gradient it was added to; absent where there was
  // none. Waits for the device.
  std::optional<double> noise_ratio() const;
  // Empties all states of the optimisers and of a wrapper, whose masters go back to rest: the coming step's `number`
  // is then 1 again. Copies are not refreshed.
  void reset_optimizers();
  // Shows the device the boundaries that rows of segments of up to `longest` tokens can have, so that what it
  // makes for them is made when its backend is next synchronised. The next row overwrites them.
  void expect_segments(std::int64_t longest);
  // The mean loss of one row's targets in nats, which changes nothing that lasts. Waits for the device.
  double probe_loss(const Batch& row);
  // How often a step has begun to change the state: one that fails before leaves it as it was.
  std::int64_t updates_begun() const { return updates_begun_; }
  // Tokens of the last step, over all ranks, and those of them whose losses count: all, or the masked ones.
  std::int64_t step_tokens() const { return rows_of_step() * tokens_per_micro_batch(config_.train); }
  std::int64_t step_targets() const { return rows_of_step() * row_targets_; }
  // Keeps the metrics of the last step under `index`; overwrites those of step index - ring.
  void record_metrics(std::int64_t index);
  // The metrics kept under first..last-1 (at most `ring`). Waits for the device; throws run_error where a
  // transfer of these steps has failed.
  std::vector<StepMetrics> read_metrics(std::int64_t first, std::int64_t last);

  // The gradient norms of the last step before clipping, by optimiser (the order of OptimizerGroups). Waits
  // for the device.
  std::vector<double> group_gradient_norms() const;

  // Updates the evaluation weights of optimisers that have any (evaluation_weights.h). By all ranks alike.
  void refresh_evaluation_weights();
  // Averages that ranks have slices of: whole until the next step, for scoring and saving. By all ranks alike.
  void gather_averages() { exchange_->gather_averages(); }

  // Tensors that make up the state of training on this rank: masters, optimiser states, averages; and the
  // evaluation weights, which follow from these, so that a checkpoint holds what would be scored. Of cut
  // parameters states and averages are this rank's slices; states that another rank alone keeps are not among them.
  std::vector<std::string> state_tensors() const;
  // The same of all ranks together, as a checkpoint has it. Of what ranks have shares of, nothing is known
  // before it is gathered, or written for share_state().
  std::vector<StateTensor> whole_state() const { return state_exchange_->whole(all_states()); }
  // With the slices of all ranks, in memory of rank 0's host or, with `everywhere`, of every rank's. By all
  // ranks alike; waits.
  std::vector<StateTensor> gather_state(bool everywhere = false) {
    return state_exchange_->gather(all_states(), everywhere);
  }
  // Every rank gets rank 0's `state`, made by whole_state(), and of slices its own. By all ranks alike.
  void share_state(const std::vector<StateTensor>& state) { state_exchange_->share(state); }

 private:
  void update(std::int64_t number);
  std::vector<std::string> all_states() const;
  std::vector<CutState> cut_states() const;
  void upload_average(const PlannedParameter& parameter, std::vector<float> values);
  void upload_blend(bool has_begun);
  void follow_up(std::int64_t number);
  void refuse_two_scored() const;
  bool has_average(const PlannedParameter& parameter) const;
  // Averages of weights at rest are whole on every rank.
  int average_ranks() const { return groups_.blends() ? 1 : world_size_; }

  const RunConfig& config_;
  const std::vector<PlannedParameter>& parameters_;
  OptimizerGroups& groups_;
  Communicator& communicator_;
  TensorStore store_;
  PackedInputWriter inputs_;
  RowParts parts_;
  std::int64_t ring_;
  std::int64_t rows_of_step() const { return micro_batches_ * world_size_; }
  void weigh_losses(std::int64_t micro_batches);
  void run_row(const Batch& row, bool reduce_after);
  double loss_scale() const { return scaled() ? set_scale_ : 1.0; }
  bool scaled() const { return plan_->find(phase_, StepRole::unscale) != nullptr; }
  void overlap_reductions();
  void place_sums();
  void zero_sums();
  void require_micro_batches() const;
  void require_sum_of(std::int64_t micro_batches) const;  // of a step
  void add_noise(NoiseOrder order);
  bool gradient_is_finite();

  std::int64_t micro_batches_;  // of this rank in the step that the losses are weighed for
  int world_size_;
  std::vector<float> loss_weights_;
  std::int64_t row_targets_ = 0;  // tokens of a micro-batch whose losses count
  double set_scale_;              // of the loss in phases that have one
  double weighed_scale_ = 0;      // that the losses are weighed with
  std::int64_t updates_begun_ = 0;
  std::unique_ptr<StepPlan> plan_;
  std::size_t phase_ = 0;
  std::unique_ptr<GradientExchange> exchange_;
  std::unique_ptr<GradientLevel>
      clipped_;  // the sum of micro-batches that were clipped each; null: there is none
  std::unique_ptr<StateExchange> state_exchange_;
  std::unique_ptr<GradientNoise> noise_;  // null where no phase here has any
  double noise_sigma_ = 0;
  std::int64_t noise_step_ = 0;
  std::vector<std::string> gradients_;          // of units, names, made once
  std::vector<std::string> group_square_sums_;  // by optimiser
};

}  // namespace mulligan

// OptimizerGroups: the parameters of a run, grouped by [optimizer.NAME], with their update and
// their learning rates.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/tensor_store.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/schedule.h"
#include "framework/plugin/wrapper.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/step/update_units.h"

namespace mulligan {

// The tensors that a graph does not own, by name.
std::map<std::string, TensorType> external_types(const Graph& graph);

struct OptimizerGroup {
  std::string name;  // NAME of [optimizer.NAME]
  double base_lr = 0;
  const Optimizer* optimizer = nullptr;
  const Schedule* schedule = nullptr;
  std::vector<std::size_t> parameters;  // indices into OptimizerGroups::units()
  bool fused = false;                   // updates are recorded with what they can do besides
  bool apart = false;            // what ranks could share is recorded one by one also where one is alone
  mlg_rate rate = neutral_rate;  // of the coming step
  std::vector<float> scalars;    // of the coming step
  std::string scalars_tensor;
  std::vector<std::string> states;     // tensors that the optimiser keeps between steps
  std::vector<std::string> surviving;  // those of them that survive warm-up where the run keeps such
};

// A part of the update's calls: of one parameter that can be gathered after it (no call where another rank updates
// it), or of all others.
struct UpdatePart {
  std::size_t begin = 0, end = 0;        // of the graph's calls
  std::optional<std::size_t> parameter;  // index into OptimizerGroups::units()
};

// What an update does besides, where its group is `fused`; the clip and the follow-up do it for the others.
struct UpdateExtras {
  bool scale_gradients = false;  // by step_tensor::clip_scale
  double ema_decay = 0;          // 0: no averages
  ComputeTypes compute;          // of the compute copies of matrices
  bool copies = true;            // false: no copies
};

class OptimizerGroups {
 public:
  // `plugins` must outlive this object.
  OptimizerGroups(const RunConfig& config, const RunPlugins& plugins,
                  const std::vector<PlannedParameter>& parameters);

  // What is updated. Parameters are joined where the backend may run fused kernels and their optimiser works
  // element by element.
  const UpdateUnits& units() const { return units_; }

  // The graph of one update of every parameter, as rank `rank` of `world_size` runs it; fills the groups'
  // states, those of other ranks among them, and the parts of the update, those that are gathered first, which are
  // the same for all `extras`. Throws the plugin's sentence, naming [optimizer.NAME].
  Graph record_update(const UpdateExtras& extras, int world_size, int rank = 0);
  const std::vector<UpdatePart>& update_parts() const { return update_parts_; }
  // Whether an update scales the gradients of optimiser number `optimizer` where it is asked to.
  bool scales_gradients(std::size_t optimizer) const { return groups_[optimizer].fused; }
  // Whether it makes averages and copies of `unit`, too: of what it updates whole.
  bool makes_copies(const PlannedParameter& unit, int world_size) const {
    return unit.trained() && groups_[unit.optimizer].fused && !unit.is_gathered(world_size) && !blends_;
  }
  // What the run's [wrapper] does after an update of all parameters; no call without one. Fills its states. Throws
  // the plugin's sentence, naming [wrapper].
  Graph record_wrapper();
  bool wrapped() const { return wrapper_ != nullptr; }
  // blends_scores() of the run: averages and copies are then made after the update.
  bool blends() const { return blends_; }
  const std::vector<std::string>& wrapper_states() const { return wrapper_states_; }
  // States of which every rank has a slice, or one rank, `owner`, all; the type is that of the whole.
  struct SharedState {
    TensorType type;
    int owner = PlannedParameter::everybody;
  };
  const std::map<std::string, SharedState>& cut_states() const { return cut_states_; }

  // Asks the schedules for the rates of the coming step; learning rates are multiplied by
  // `lr_multiplier`. Throws config_error where they do not agree on the batch.
  void set_rates(const mlg_progress& progress, double lr_multiplier = 1);
  // Of the coming step, in train.tokens_per_step.
  double batch_factor() const { return groups_.empty() ? 1 : groups_.front().rate.batch_factor; }
  // Puts the scalars of update number `step` (from 1) with the present rates into the store. No allocation.
  void upload_scalars(TensorStore& store, std::int64_t step);

  const std::vector<OptimizerGroup>& groups() const { return groups_; }

 private:
  void add_states(std::vector<std::string>& to, const std::vector<std::string>& recorded,
                  const Graph& graph) const;
  void set_wrapper_scalars(std::int64_t step);
  void refuse_what_cannot_be_shared(int world_size) const;
  void note_owned_states(const std::vector<std::string>& states, const Graph& graph, int owner);
  bool keeps_other_states_apart(const OptimizerGroup& group) const;
  std::vector<std::vector<std::size_t>> calls_of(const OptimizerGroup& group, int world_size) const;
  void note_cut_states(const Graph& graph, int world_size);

  UpdateUnits units_;
  FusedKernels fused_kernels_;
  std::vector<OptimizerGroup> groups_;
  std::vector<UpdatePart> update_parts_;
  std::map<std::string, SharedState> cut_states_;
  mlg_progress progress_{};  // that the rates are for
  bool blends_;
  const Wrapper* wrapper_;
  std::vector<mlg_group_rate> wrapper_rates_;
  std::vector<float> wrapper_scalars_;
  std::vector<std::string> wrapper_states_;
};

}  // namespace mulligan

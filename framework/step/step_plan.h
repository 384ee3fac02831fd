// StepPlan: the programs of a training step in each phase of a run, on one backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/program.h"
#include "framework/step/optimizer_groups.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

// What a program does in a step (role_name() in this order). Programs are known by their role, never by their name.
enum class StepRole {
  micro_step,  // forward, loss and backward of one micro-batch, or of a part of it
  unscale,     // gradients divided by the scale of the loss, in phases that have one
  clip,        // gradient norm, and gradients scaled to at most train.clip_norm where the update does not
  update,      // of all parameters by their optimisers
  follow_up,   // averages and compute copies that the update did not make
  record,      // the step's metrics into their rings
  refresh,     // compute copies alone, after masters were set from outside
  evaluation_weights,  // weights that an optimiser has scored in its masters' place
};
const char* role_name(StepRole role);

// One program of a phase, and how often a step of one rank runs it: 0 for those that run between steps.
struct PlannedStep {
  StepRole role;
  std::int64_t runs_per_step = 0;
  Program* program = nullptr;
};

class StepPlan {
 public:
  // Prepares the programs of all phases of `config` that run on `section` ("backend", "phase.2.backend";
  // empty: all, as a plan on one backend needs them); phases that agree on what a program depends on share
  // it. `ring` is how many steps' metrics are kept. All references must outlive this object. Throws Error.
  StepPlan(const RunConfig& config, const std::string& section, const RunPlugins& plugins,
           const std::vector<PlannedParameter>& parameters, OptimizerGroups& groups, int world_size, int rank,
           std::int64_t ring, TensorStore& store);

  // Whether `phase`, an index into RunConfig::phases, runs here.
  bool has(std::size_t phase) const { return !phases_[phase].empty(); }
  // In the order in which a step runs them. Empty for a phase of another backend.
  const std::vector<PlannedStep>& steps(std::size_t phase) const { return phases_[phase]; }
  // The program of a role in a phase that runs here; null where it has none.
  Program* find(std::size_t phase, StepRole role) const;
  // Of the calls of follow_up in a phase that runs here, where averages are and where they begin.
  FollowUpParts follow_up_parts(std::size_t phase) {
    return copies(compute_types(config_.phases[phase])).parts;
  }
  // Compute copies in `compute`, the dtypes of a phase here or those of scores.
  Program& refresh(ComputeTypes compute);
  // All programs, each once.
  const std::vector<Program*>& programs() const { return programs_; }

 private:
  struct MicroStep {
    LayerOrderKind order;
    ComputeTypes compute;
    Program* program;
  };
  struct Copies {
    ComputeTypes compute;
    Program *update, *refresh, *follow_up;
    FollowUpParts parts;
  };
  Program* add(Graph graph, std::string name);
  Program* micro_step(LayerOrderKind order, ComputeTypes compute);
  // Update, follow-up and refresh for compute copies in these dtypes.
  const Copies& copies(ComputeTypes compute);

  const RunConfig& config_;
  const RunPlugins& plugins_;
  const std::vector<PlannedParameter>& parameters_;
  OptimizerGroups& groups_;
  int world_size_, rank_;
  bool scales_in_update_ = false;
  TensorStore& store_;
  std::vector<std::unique_ptr<Program>> owned_;
  std::vector<Program*> programs_;
  std::vector<MicroStep> micro_steps_;
  std::vector<Copies> copies_;
  std::vector<std::vector<PlannedStep>> phases_;
};

// The section of the backend that a phase runs on.
std::string backend_section(const Phase& phase);

}  // namespace mulligan

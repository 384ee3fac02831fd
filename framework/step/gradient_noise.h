// GradientNoise: noise in the gradients of a step, after they were reduced over ranks ([noise]).
//
// Element i of a parameter draws from Philox keyed by the run's seed at the counter (i, step, parameter): so
// the noise is the same on every backend and number of ranks, with joined parameters, and after a resume.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/program.h"
#include "framework/graph/tensor_store.h"
#include "framework/ranks/communicator.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

class GradientNoise {
 public:
  // Declares its tensors in `store` and makes programs for each of `modes`. Of parameters that `slices` ranks
  // share (PlannedParameter::is_cut) each adds the noise of its slice. All references must outlive it.
  GradientNoise(std::int64_t seed, const std::vector<NoiseMode>& modes,
                const std::vector<PlannedParameter>& parameters, TensorStore& store,
                Communicator& communicator, int slices);

  // To be bound with the other programs of the step.
  std::vector<Program*> programs() const;
  // Uploads what names the streams; takes the tensors' memory. By all ranks alike.
  void prepare();
  // Adds the noise of `mode`, one of those given or off, to the gradients: with strength `sigma`
  // (noise_sigma), drawn for `step`. Only enqueues work. By all ranks alike.
  void add(NoiseMode mode, double sigma, std::int64_t step);
  // The norm of the last noise over that of the gradients it was added to, both over all parameters; absent
  // where the last call of add() was off, or there was no gradient. Waits for the device.
  std::optional<double> ratio() const;

 private:
  struct ModePrograms {
    NoiseMode mode;
    std::unique_ptr<Program> measure;  // squares of this rank's slices; null where nothing is cut
    std::unique_ptr<Program> add;
  };
  // What this rank adds noise to of a parameter.
  struct Part {
    std::string gradient;    // the tensor
    TensorType stored;       // its type
    TensorType type;         // without the padding of a last slice
    std::int64_t first = 0;  // its place in the whole gradient
    bool cut = false;
  };
  Part part_of(const PlannedParameter& parameter) const;
  Graph build_measure() const;
  Graph build_add(NoiseMode mode) const;
  Value sum(Graph& graph, bool cut, std::int64_t index) const;
  bool any_cut() const;

  std::int64_t seed_;
  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  Communicator& communicator_;
  int slices_;
  std::vector<ModePrograms> modes_;
  std::unique_ptr<TransferBatch> gradients_of_all_, noise_of_all_;  // null where nothing is cut
  bool added_ = false;
};

// The strength of the noise of a step in `phase`, after `step` updates, with this share of the budget spent:
// the phase's factor times noise.sigma, for `anneal` the standard deviation sqrt(that / (1 + step)^0.55), for
// the two roundings 1; 0 outside of the window and where the phase has none.
double noise_sigma(const NoiseConfig& noise, const Phase& phase, std::int64_t step, double budget_fraction);

// For the phases that run on `section` (StepPlan); null where none of them has noise. `slices`: so many ranks
// each update a slice of the cut parameters.
std::unique_ptr<GradientNoise> make_gradient_noise(const RunConfig& config, const std::string& section,
                                                   const std::vector<PlannedParameter>& parameters,
                                                   TensorStore& store, Communicator& communicator,
                                                   int slices);

}  // namespace mulligan

// GradientExchange: how the gradients of the ranks become one, and how what each rank updated becomes whole
// again.
//
// A parameter is reduced in one of three ways:
//   replicated  all ranks get the whole sum and update the whole parameter alike;
//   sharded     rank r gets the sum of its slice of the first dimension, ceil(B / N) of B entries, updates
//               that slice, and the slices are gathered (the record's banks). The last slices may be padded,
//               with zeros;
//   in a tree   (run.determinism = "world") every rank gets the whole sum. It is taken over the step's
//               micro-batches as over the leaves of one binary tree, whoever computed them, so its bits do
//               not depend on the number of ranks.
// The first two may carry gradients in bf16 (communication_dtype).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/dist/communicator.h"
#include "framework/graph/program.h"
#include "framework/run/parameter_plan.h"
#include "framework/step/gradient_tree.h"

namespace mulligan {

class GradientExchange {
 public:
  // Declares the tensors of the exchange in `store` and makes its programs. `parameters` and `store` must
  // outlive it. Throws config_error where a tree is asked for that these micro-batches and ranks do not make.
  GradientExchange(const RunConfig& config, Backend& backend, const std::vector<PlannedParameter>& parameters,
                   TensorStore& store, int world_size);
  ~GradientExchange();

  // To be bound with the other programs of the step.
  std::vector<Program*> programs() const;
  // Makes the transfers ready; takes the memory of the tensors. `communicator` must outlive it.
  void prepare(Communicator& communicator);

  // Whether sums are taken in a tree: then every micro-step begins with gradients and loss sum of zero, and
  // is followed by add_leaf().
  bool in_a_tree() const { return tree_ != nullptr; }
  void add_leaf(std::int64_t micro, std::int64_t count) { tree_->add_leaf(micro, count); }
  // Throws config_error where steps of this many micro-batches on each rank cannot be summed.
  void require_micro_batches(std::int64_t count) const {
    if (tree_) tree_->require_leaves(count);
  }

  // From this rank's gradients and loss sum to those of all ranks. After it, gradients of sharded parameters
  // are in PlannedParameter::updated_gradient.
  void reduce();
  // What this rank updates of the whole gradients of a tree, once they are clipped.
  void cut_gradients();
  // Whether the squares of gradients are summed over ranks, by measure(), before the clip program runs.
  bool measures() const { return measure_ != nullptr; }
  void measure();

  // The slices that this rank updates, from whole masters: after these were set from outside.
  void cut_masters();
  // Starts to gather parameter number `index`, if it is cut; finish_gathering() waits for all.
  void gather(std::size_t index);
  void finish_gathering();

 private:
  struct Slice {  // of a cut parameter
    std::size_t parameter = 0;
    std::int64_t elements = 0;
    std::unique_ptr<TransferBatch> gather;
  };
  void declare_slices();
  void declare_carried();
  std::unique_ptr<Program> program(Graph graph, const char* name);

  Backend& backend_;
  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  int world_size_, rank_ = 0;
  std::unique_ptr<GradientTree> tree_;
  std::vector<Slice> slices_;
  std::unique_ptr<Program> pack_, unpack_, measure_;
  std::unique_ptr<TransferBatch> reduce_, squares_;
};

}  // namespace mulligan

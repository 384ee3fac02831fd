// GradientExchange: sums the gradients of the ranks, and makes whole again what each rank updated a part of.
//
// A parameter is reduced in one of four ways:
//   replicated  all ranks get the whole sum and update the whole parameter alike;
//   sharded     rank r gets the sum of its slice of the first dimension, ceil(B / N) of B entries, updates
//               that slice, and the slices are gathered (the record's banks). The last slices may be padded,
//               with zeros. A slice lies where it belongs in the whole, so it takes no memory of its own;
//   owner       one rank gets the whole sum, updates the parameter, and sends it to all;
//   in a tree   (run.determinism = "world") every rank gets the whole sum. It is taken over the step's
//               micro-batches as over the leaves of one binary tree, whichever rank computed them, so its bits do
//               not depend on the number of ranks.
// All but the last may carry gradients in bf16 (communication_dtype), and go by parts while the backward pass still
// makes other gradients (update_units.h). Padding travels where it costs less than to leave it out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/program.h"
#include "framework/ranks/communicator.h"
#include "framework/run/parameter_plan.h"
#include "framework/step/update_units.h"

namespace mulligan {

// Gradients and a loss sum that are kept aside until they are added to those of a later micro-step.
class GradientLevel {
 public:
  // Declares its tensors in `store`, which has the gradients; `level` tells it from others. `parameters` and `store`
  // must outlive it.
  GradientLevel(const std::vector<PlannedParameter>& parameters, TensorStore& store, std::size_t level);

  Program& program() const { return *program_; }
  // Copies gradients and loss sum here.
  void keep();
  // Adds what was kept to gradients and loss sum, in f32 and f64.
  void add() { program_->run(); }

 private:
  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  std::size_t level_;
  std::unique_ptr<Program> program_;
};

// The gradients of a step summed as over the leaves of one binary tree (run.determinism = "world"). fp32, and powers of two.
class GradientTree {
 public:
  // Declares its tensors in `store`, which has the gradients, and makes its programs. `parameters` and
  // `store` must outlive it. Throws config_error where these settings and ranks make no tree.
  GradientTree(const RunConfig& config, const std::vector<PlannedParameter>& parameters, TensorStore& store,
               int world_size);

  std::vector<Program*> programs() const;
  void prepare(Communicator& communicator);

  // Throws config_error where it has no place for this many micro-batches of one rank.
  void require_leaves(std::int64_t count) const;
  // Adds what micro-step number `micro` of this rank's `count` left in gradients and loss sum; after the last
  // one they are this rank's sum. Each micro-step begins with zeros.
  void add_leaf(std::int64_t micro, std::int64_t count);
  // From this rank's sums to those of all ranks.
  void reduce();

 private:
  void declare_levels(std::int64_t leaves);
  void declare_pieces();

  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  int world_size_;
  std::vector<GradientLevel> levels_;  // of this rank's tree
  std::unique_ptr<Program> add_pieces_;
  std::unique_ptr<TransferBatch> deal_, share_;
};

class GradientExchange {
 public:
  // Declares the tensors of the exchange in `store` and makes its programs. All references must outlive
  // it. Throws config_error where a tree is asked for that these micro-batches and ranks do not make.
  GradientExchange(const RunConfig& config, const UpdateUnits& units, TensorStore& store,
                   Communicator& communicator);
  ~GradientExchange();

  // From now on the last of a step's runs of `micro_step` may be made by run_and_reduce(). Nothing where sums
  // are taken in a tree, or one rank is alone.
  void overlap(Program& micro_step);
  bool overlaps(const Program& micro_step) const { return overlapped_.contains(&micro_step); }
  // Runs it, and meanwhile does what reduce() does: each part of the gradients is sent when it is complete.
  void run_and_reduce(Program& micro_step);

  // To be bound with the other programs of the step.
  std::vector<Program*> programs() const;
  // Makes the transfers ready; takes the memory of the tensors.
  void prepare();

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
  // Whether the squares of gradients are summed over ranks, by measure(), before the clip program runs.
  bool measures() const { return measure_ != nullptr; }
  void measure();

  // Starts to gather parameter number `index`, if ranks need it of others; finish_gathering() waits for all.
  void gather(std::size_t index);
  void finish_gathering();
  // The averages of cut parameters whole, for scoring and saving: average_name(), in the memory of the
  // gradients, which nothing needs between two steps.
  void gather_averages();
  std::vector<std::string> averages_in_gradients() const;
  // The evaluation weights of cut parameters whole, after their slices were written.
  void gather_evaluation();

 private:
  struct Gather {
    std::size_t parameter = 0;
    std::unique_ptr<TransferBatch> batch;
  };
  bool is_mine(const PlannedParameter& parameter) const {
    return parameter.is_updated_by(rank_, world_size_);
  }
  void declare_slices(const RunConfig& config);
  void declare_slice(std::string_view slice, std::string_view whole, const PlannedParameter& parameter,
                     DType dtype);
  void declare_carried();
  bool carries(const PlannedParameter& parameter) const {
    return world_size_ > 1 && parameter.communication_dtype != MLG_F32;
  }
  // Whether transfers of equal shares, the last of them padded, send no more than one for each part.
  bool in_equal_shares(const PlannedParameter& parameter) const {
    if (parameter.owner(world_size_) != PlannedParameter::everybody) return false;
    const std::int64_t share = parameter.updated_type(world_size_).dims[0];
    return !parameter.is_cut(world_size_) || (world_size_ - 1) * share <= parameter.layout.spec.type.dims[0];
  }
  Transfer sum_of(const GradientPart& part) const;
  Transfer whole_sum_of(const PlannedParameter& parameter) const;
  std::vector<Transfer> gathers_of(const PlannedParameter& parameter, const std::string& slice,
                                   const std::string& whole) const;
  std::unique_ptr<Program> pack_of(const std::vector<std::size_t>& parts);

  struct Stage {  // of a backward pass
    std::size_t calls = 0;
    std::vector<std::size_t> parts;
    std::unique_ptr<Program> pack;  // null where nothing changes its dtype
    std::unique_ptr<TransferBatch> batch;
  };

  const UpdateUnits& units_;
  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  Communicator& communicator_;
  int world_size_, rank_;
  std::unique_ptr<GradientTree> tree_;
  std::vector<Gather> gathers_;
  std::vector<std::size_t> cut_;  // parameters of which ranks have slices
  std::vector<GradientPart> parts_;
  std::map<const Program*, std::vector<Stage>> overlapped_;
  std::unique_ptr<Program> pack_, unpack_, measure_;
  std::unique_ptr<TransferBatch> reduce_, squares_, averages_, evaluation_;
};

}  // namespace mulligan

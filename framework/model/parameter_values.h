// Parameters in the graph: the places of the master, the compute copy and the gradient of each.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/graph/tape.h"
#include "framework/model/parameters.h"

namespace mulligan {

// Names of persistent tensors in the TensorStore.
std::string master_name(std::string_view parameter);    // updated by the optimiser, f32 or bf16
std::string compute_name(std::string_view parameter);   // the copy that kernels read, if its dtype differs
std::string gradient_name(std::string_view parameter);  // f32

// Dtypes of a forward pass: that of activations and the matrices they are multiplied with, and that of the projections'
// matrices. The latter may be narrower than f32 activations (LayerCast). One dtype stands for both.
struct ComputeTypes {
  DType activations = MLG_F32;
  DType projections = MLG_F32;
  ComputeTypes() = default;
  ComputeTypes(DType compute) : activations(compute), projections(compute) {}
  ComputeTypes(DType activations_, DType projections_)
      : activations(activations_), projections(projections_) {}
  bool operator==(const ComputeTypes&) const = default;
  // The dtype of the copy that kernels read.
  DType of(const ParameterSpec& spec) const {
    return !spec.matrix ? MLG_F32 : spec.projection ? projections : activations;
  }
};

// One parameter with the choice of its storage.
struct ParameterLayout {
  ParameterSpec spec;
  DType master = MLG_F32;
  DType compute = MLG_F32;  // dtype that kernels read: ComputeTypes::of

  // tensor that kernels read instead of master and copy, such as averaged weights; usually empty
  std::string source;
  bool trained = true;  // false: no optimiser updates it, and nothing computes its gradient

  bool has_copy() const { return master != compute; }
  std::string read_name() const {
    if (!source.empty()) return source;
    return has_copy() ? compute_name(spec.name) : master_name(spec.name);
  }
};

// `master_dtypes` names parameters with another master dtype than f32.
std::vector<ParameterLayout> parameter_layouts(
    const ModelConfig& model, ComputeTypes compute,
    const std::unordered_map<std::string, DType>& master_dtypes = {});

// Looks parameters up while a forward pass is built.
class ParameterValues {
 public:
  // With `trainable`, every parameter that the forward pass uses is watched and its gradient accumulated.
  ParameterValues(Tape& tape, const std::vector<ParameterLayout>& layouts, bool trainable);
  // The value that kernels read. Throws std::logic_error for an unknown name.
  Value operator()(std::string_view name) const;

 private:
  Tape& tape_;
  bool trainable_;
  std::unordered_map<std::string, ParameterLayout> layouts_;
};

// Calls that bring every compute copy up to date with its master.
void build_refresh_copies(Graph& graph, const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan

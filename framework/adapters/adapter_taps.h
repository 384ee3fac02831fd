// Puts a plugin's adapters into the one forward pass, and their gradients into its backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/model/taps.h"
#include "framework/plugin/ttt.h"

namespace mulligan {

// "q", "k", "v", "attention_output", "mlp_up", "mlp_down", "head".
const char* tap_kind_name(TapKind kind);

// One trainable tensor: the adapter `group` of one tap.
struct AdapterTensor {
  std::string name;   // "q/3/A", "head/B": unique within a batch size
  std::string group;  // "A": the plugin's name for it
  TapKind kind = TapKind::q;
  std::int64_t slot = -1;
  TensorType type;       // f32 [documents, ...]
  bool uniform = false;  // first value: drawn from +-bound, or zero
  double bound = 0;
  std::string master;  // tensor in the store
  std::string copy;    // the copy that kernels read if the compute dtype is not f32; else empty
  std::string start;   // the value it started from, kept for the drift; only where `uniform`

  const std::string& read_name() const { return copy.empty() ? master : copy; }
};

class AdapterTaps : public Taps {
 public:
  // A tap's adapters with their gradients (f32, complete), in backward order. Later calls of the graph may update them in
  // place.
  struct Gradient {
    const AdapterTensor* adapter;
    Value value;
  };
  using GradientSink = std::function<void(Graph&, std::span<const Gradient>)>;

  // `prefix` begins the names of the tensors in the store. There are adapters for `documents` documents. The last
  // `active` of them have windows, one after another; the plugin sees these only, and the gradient of the others is
  // zero. `plugin` must outlive this object, and this object must outlive the plugin's last call.
  AdapterTaps(const TttPlugin& plugin, std::string prefix, std::int64_t documents, std::int64_t active,
              DType compute, GradientSink sink);

  Value at(Tape& tape, const TapSite& site) override;
  bool changes(const Graph& graph, const TapSite& site, const TensorType& output) const override;
  // In the order of the forward pass; complete after the forward pass is built.
  const std::vector<std::shared_ptr<const AdapterTensor>>& tensors() const { return tensors_; }
  // Whether the forward pass has kernels that only a plugin knows. Probes must test these.
  bool unknown_kernels() const { return unknown_kernels_; }

 private:
  struct TapState;
  mlg_tap tap_of(const Graph& graph, const TapSite& site, const TensorType& output) const;
  AdapterTensor make_tensor(const TapSite& site, const mlg_adapter& adapter) const;
  Value active_part(Graph& graph, const AdapterTensor& tensor, Value whole) const;
  Value make_gradient(Graph& graph, const AdapterTensor& tensor) const;
  void record_backward(TapState& state, const TapSite& site, Backward& backward);

  const TttPlugin& plugin_;
  std::string prefix_;
  std::int64_t documents_, active_;
  DType compute_;
  GradientSink sink_;
  std::vector<std::shared_ptr<const AdapterTensor>> tensors_;
  std::vector<std::shared_ptr<TapState>> states_;
  bool unknown_kernels_ = false;
};

}  // namespace mulligan

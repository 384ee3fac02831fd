// An element of the model: a part of the forward pass that a configuration switches on or off, in a folder of its own
// (framework/model/elements/NAME). It declares its keys (keys.cpp), its parameters, and its work at one or more named stages
// of the forward pass. framework/model/elements/list.inc names all elements; docs/architecture.md shows how to add one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/graph/tape.h"
#include "framework/model/parameter_values.h"
#include "kernels/head_gate_xsa/op.h"

namespace mulligan {

// The objects with which an element builds its calls.
struct ElementContext {
  Tape& tape;
  const ModelConfig& model;
  const ParameterValues& parameters;
};

// Stage "embedding": between the embedding and the first norm.
struct EmbeddingSite {
  Value tokens;             // [T] i32
  std::int64_t row_length;  // token t begins a row if t mod row_length is 0; nothing crosses such a place
  Value x;                  // [T, D] in the compute dtype: the embedding, or the result of the element before
};

// Stage "attention": attention inside segments, causal unless an element says otherwise.
struct AttendSite {
  Value q;           // [T, H, h] in the compute dtype
  Value k, v;        // [T, K, h]
  Value cu_seqlens;  // [N+1] i32
};

// Stage "attention output": elements change each head's result before the output projection. This object holds the stage's
// value meanwhile. One kernel can do several steps in one call. So a step is only requested, and it is recorded when the next
// step cannot join it.
class AttentionOutput {
 public:
  // o [T, H, h]: the result of attention; v [T, K, h]: its values, with a separate gradient; gate [T, H]: the logits of the
  // active element with a head_gate, or absent.
  AttentionOutput(Tape& tape, std::int64_t layer, Value o, Value v, Value gate)
      : tape_(tape), layer_(layer), o_(o), v_(v), gate_(gate) {}

  std::int64_t layer() const { return layer_; }

  // o - (o.u)u of each head, u the normed value of the same position.
  void remove_value() {
    if (removes_ || gates_) record();
    removes_ = true;
  }
  // o times sigmoid(scale * gate).
  void apply_gate(double scale) {
    if (gates_) record();
    gates_ = true;
    scale_ = scale;
  }
  // The present value.
  Value value() {
    record();
    return o_;
  }

 private:
  void record() {
    if (removes_ || gates_)
      o_ = ops::head_gate_xsa(tape_, o_, removes_ ? v_ : Value{}, gates_ ? gate_ : Value{}, scale_);
    removes_ = gates_ = false;
    scale_ = 1;
  }

  Tape& tape_;
  std::int64_t layer_;
  Value o_, v_, gate_;
  bool removes_ = false, gates_ = false;
  double scale_ = 1;
};

// Stage "head": the use of the logits. A loss plugin may apply the softcap itself, in the same pass.
enum class HeadUse {
  scoring,           // evaluation, test-time training and the next token
  training,          // the loss reads the result
  training_uncapped  // the same, but the caller applies model.softcap
};

// A gate of attention heads: logits [T, H] = n[:, :window] W^T, computed along with queries, keys and values.
struct HeadGate {
  std::string_view parameter;  // W [H, window], by its name within a block
  std::int64_t window = 0;     // the gate reads these first dimensions of the attention part's input n [T, D]
};

// Members that an element does not need are null. All are called while a graph is built. The order and number of calls of
// `parameters` decide the order in which tensors are stored.
struct Element {
  std::string_view name;
  bool (*active)(const ModelConfig& model) = nullptr;

  // Throws config_error if the element does not fit a tokenizer whose documents begin with `bos_id`.
  void (*check_tokenizer)(const ModelConfig& model, int bos_id) = nullptr;

  // Appends the parameters of the model as a whole, or those of one layer (block_parameter(layer, ...)).
  void (*parameters)(const ModelConfig& model, std::vector<ParameterSpec>& out) = nullptr;
  void (*block_parameters)(const ModelConfig& model, std::int64_t layer,
                           std::vector<ParameterSpec>& out) = nullptr;

  // Whether no training loss depends on the parameter of that name, so that no optimiser can update it.
  bool (*is_inert)(std::string_view parameter) = nullptr;

  // Stage "embedding": returns the replacement of site.x, of the same type.
  Value (*mix_embedding)(const ElementContext& context, const EmbeddingSite& site) = nullptr;
  // Stage "attention": computes the stage in place of plain attention, [T, H, h]; at most one active element.
  Value (*attend)(const ElementContext& context, const AttendSite& site) = nullptr;
  // Stage "attention output": the gate that mix_attention will apply; at most one active element has one.
  HeadGate (*head_gate)(const ModelConfig& model) = nullptr;
  // Stage "attention output": acts on each head's result before the output projection.
  void (*mix_attention)(const ElementContext& context, AttentionOutput& output) = nullptr;
  // Stage "head": returns the replacement of the logits [T, V].
  Value (*transform_head)(const ElementContext& context, HeadUse use, Value logits) = nullptr;
  // Stage "head": the element that this one replaces if that is active and tokens are scored; empty: none.
  std::string_view scores_instead_of = {};
};

}  // namespace mulligan

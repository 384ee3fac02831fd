// What elements do to the result of attention, head by head, before the output projection.
#pragma once

#include <cstdint>

#include "framework/graph/ops/head_gate_xsa.h"
#include "framework/graph/tape.h"

namespace mulligan {

// The stage's value while its elements act on it. What one kernel can do at once is done by one call: that is
// why the steps below are asked for, and recorded when the next one cannot join them.
class AttentionOutput {
 public:
  // o [T, H, h]: the result of attention; v [T, K, h]: its values, whose gradient is kept apart; n [T, D]:
  // the normed input of the attention part; gate [T, H]: the logits of the active element that has a
  // head_gate, or absent.
  AttentionOutput(Tape& tape, std::int64_t layer, Value o, Value v, Value n, Value gate)
      : tape_(tape), layer_(layer), o_(o), v_(v), n_(n), gate_(gate) {}

  std::int64_t layer() const { return layer_; }
  Value input() const { return n_; }
  Value gate_logits() const { return gate_; }

  // o - (o.u)u of each head, u the normed value of the same position.
  void remove_value() {
    if (removes_ || gates_) record();
    removes_ = true;
  }
  // o times sigmoid(scale * gate_logits()).
  void apply_gate(double scale) {
    if (gates_) record();
    gates_ = true;
    scale_ = scale;
  }
  // The value as it is now, for ops of an element's own, and what such ops put in its place.
  Value value() {
    record();
    return o_;
  }
  void set(Value o) {
    record();
    o_ = o;
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
  Value o_, v_, n_, gate_;
  bool removes_ = false, gates_ = false;
  double scale_ = 1;
};

}  // namespace mulligan

// What happens to an attention result before the output projection: XSA and the head gate.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

// XSA (v present): removes from each head's result its component along the value of the same position, o -
// (o.u)u with u = v/max(|v|, 1e-12). Gate (gate present): times sigmoid(gate_scale gate). o [T, H, h]; v [T,
// K, h] or absent; gate [T, H] or absent; at least one of the two.
Value head_gate_xsa(Tape& tape, Value o, Value v, Value gate, double gate_scale = 1);

}  // namespace mulligan::ops

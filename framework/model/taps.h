// Taps: the named points of the one forward pass where others may look or add.
//
// Training, evaluation, GPTQ calibration and test-time training build the same graph with different taps, so
// there is no second forward pass that could forget a part of the model.
#pragma once

#include <cstdint>

#include "framework/graph/tape.h"
#include "framework/model/parameters.h"

namespace mulligan {

// One linear layer of the forward pass at the moment its result is known.
struct TapSite {
  TapKind kind = TapKind::q;
  std::int64_t slot = -1;   // execution slot: encoder entries, then decoder entries; -1 for the head
  std::int64_t layer = -1;  // physical layer; -1 for the head
  Value layer_input;        // what the linear layer read (calibration collects its second moment)
  // What an adapter reads: the normed input of the attention or MLP part (head: the final norm).
  Value block_input;
  Value output;  // the linear layer's result; may be absent where changes() said false
};

class Taps {
 public:
  virtual ~Taps() = default;
  // Returns the value that replaces site.output: itself, or a new value such as
  // output + adapter(block_input).
  virtual Value at(Tape& tape, const TapSite& site) = 0;
  // Whether at() will change the result of that layer, in place or by another. Asked before there is one
  // (site.output is absent, its type is `output`): false lets the forward pass compute what follows with it.
  virtual bool changes(const Graph& graph, const TapSite& site, const TensorType& output) const = 0;
};

}  // namespace mulligan

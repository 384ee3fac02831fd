// Taps: named points of the forward pass at which other code reads or replaces a value. Training, evaluation, GPTQ calibration
// and test-time training build the same graph with different taps, so there is only one forward pass.
#pragma once

#include <cstdint>

#include "framework/graph/tape.h"
#include "framework/model/parameters.h"

namespace mulligan {

// One linear layer of the forward pass, after its result is computed.
struct TapSite {
  TapKind kind = TapKind::q;
  std::int64_t slot = -1;   // execution slot: encoder entries, then decoder entries; -1 for the head
  std::int64_t layer = -1;  // physical layer; -1 for the head
  Value layer_input;        // the input of the linear layer (calibration collects its second moment)
  // The input of an adapter: the normed input of the attention or MLP part (head: the final norm).
  Value block_input;
  Value output;  // the linear layer's result; may be absent if changes() returned false
};

class Taps {
 public:
  virtual ~Taps() = default;
  // Returns the value that replaces site.output: itself, or a new value such as
  // output + adapter(block_input).
  virtual Value at(Tape& tape, const TapSite& site) = 0;
  // Whether at() will change the result of that layer, in place or by another value. It is called before the result exists
  // (site.output is absent; its type is `output`). If false, the forward pass may fuse the layer with what follows.
  virtual bool changes(const Graph& graph, const TapSite& site, const TensorType& output) const = 0;
};

}  // namespace mulligan

// A test-time-training plugin's adapters at one tap, on inputs that a check chooses. AdapterTaps records them, as in a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/adapters/adapter_taps.h"
#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"

namespace mulligan {

// The extents of mlg_tap.
struct AdapterShape {
  TapKind kind = TapKind::q;
  std::int64_t documents = 0, tokens = 0, inputs = 0, outputs = 0;
};

struct AdapterInputs {
  std::vector<float> block_input, layer_output, output_gradient;
  std::vector<std::vector<float>> adapters;
};
struct AdapterOutputs {
  std::vector<float> output;  // with the adapters
  std::vector<float> input_gradient;
  std::vector<float> layer_gradient;  // of the layer's own result
  std::vector<std::vector<float>> adapter_gradients;
  NamedResults named(TapKind kind) const;
};

class AdapterProbe {
 public:
  AdapterProbe(Backend& backend, const TttPlugin& plugin, const AdapterShape& shape);

  std::size_t adapters() const { return taps_.tensors().size(); }
  AdapterInputs sample_inputs() const;
  void set(const AdapterInputs& inputs);
  AdapterOutputs run(std::uint8_t poison = poison_zero);
  PoisonedRun& memory() { return run_; }

 private:
  Graph record();

  AdapterShape shape_;
  AdapterTaps taps_;
  PoisonedRun run_;
};

// Checks that gradients are written and depend on the inputs only. Returns a problem, or empty.
std::string adapter_outputs_problem(Backend& backend, const TttPlugin& plugin, const AdapterShape& shape);

}  // namespace mulligan

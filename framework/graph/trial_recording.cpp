#include "framework/graph/trial_recording.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/graph/graph_recorder.h"

namespace mulligan {

bool have_kernels_of(const FusedKernels& fused, const Graph& trial) {
  return std::ranges::all_of(trial.calls(), [&](const Call& call) { return fused.have({call.kernel}); });
}

bool can_fuse_update(const FusedKernels& fused, const Optimizer& optimizer, const TensorType& parameter) {
  if (!optimizer.has_fused_update()) return false;
  Graph trial;
  const mlg_parameter row{"w", trial.external("master", parameter).id,
                          trial.external("gradient", parameter.as(MLG_F32)).id, 1.0, 1.0};
  const mlg_value average = trial.external("average", parameter.as(MLG_F32)).id;
  const mlg_value copy = trial.external("copy", parameter.as(MLG_BF16)).id;
  const mlg_update update{trial.external("scale", TensorType(MLG_F32, {1})).id, &average, 0.5, &copy};
  Value scalars;
  if (const std::int64_t count = optimizer.scalar_count(); count > 0) {
    scalars = trial.external("scalars", TensorType(MLG_F32, {count}));
  }
  GraphRecorder recorder(trial, "state");
  try {
    optimizer.record_update(*recorder.table(), {&row, 1}, scalars.id, update);
  } catch (const Error&) {
    return false;
  }
  return have_kernels_of(fused, trial);
}

}  // namespace mulligan

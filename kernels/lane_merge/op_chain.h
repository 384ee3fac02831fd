// A block of two lanes whose results enter the lanes in one call with what comes next: the next block's skip,
// mix and norms, or the mean of both lanes and its norm (lane_chain, lane_mean_norm in docs/kernels.md).
// Forward and backward each cross memory once.
#pragma once

#include "kernels/lane_merge/op.h"

namespace mulligan::ops {

// What lane_merge is given.
struct LaneBlock {
  Lanes lanes;
  Value a, m;
  LaneParameters parameters;
};

// What is merged into lane 0: absent values where there is nothing.
struct LaneSkip {
  Value skip;    // [T, d]
  Value weight;  // [d] f32
  Value gate;    // [d] f32
};

struct NextLanes {
  Lanes lanes;           // lane 0 with the skip
  Value attention_norm;  // scale * rms_norm(mix[0]*lane0 + mix[1]*x0)
  Value mlp_norm;        // scale * rms_norm(lane1)
};

// lane_merge, skip_merge, residual_mix_norm of lane 0 and rms_norm of lane 1, into `next`.
// x0 [T, d], mix [2, d] f32.
void lane_chain(Tape& tape, const LaneBlock& block, const LaneSkip& skip, Value x0, Value mix, double scale,
                double eps, const NextLanes& next);

// lane_merge and scale * rms_norm((lane0 + lane1) / 2), into `norm`.
void lane_mean_norm(Tape& tape, const LaneBlock& block, double scale, double eps, Value norm);

}  // namespace mulligan::ops

// Two parallel lanes: how a block's attention and MLP results enter them.
#pragma once

#include "framework/graph/tape.h"

namespace mulligan::ops {

struct Lanes {
  Value attention;  // lane 0
  Value mlp;        // lane 1
};

struct LaneParameters {
  Value attn_scale;  // [d] f32
  Value mlp_scale;   // [d] f32
  Value rho;         // [2] f32: residual weight of each lane
  Value post;        // [2, 2] f32: [source: attention, MLP][target lane]
};

// a, m [T, d]: un-scaled attention and MLP results. lane_k' = rho[k]*lane_k +
// post[0][k]*attn_scale*a + post[1][k]*mlp_scale*m.
// Into `out`, where that is there.
Lanes lane_merge(Tape& tape, const Lanes& lanes, Value a, Value m, const LaneParameters& p, Lanes out = {});

}  // namespace mulligan::ops

// What kernels on two lanes of a residual stream share (lane_merge.cu, lane_chain.cu says what they compute):
// how lanes take in the scaled results A of attention and M of an MLP, and the gradients of those weights.
#pragma once

#include <mulligan/cuda/rows.cuh>

namespace {

// rho [2], post [2, 2]
struct LaneWeights {
  float rho0, rho1, a0, a1, m0, m1;

  __device__ LaneWeights(global<const float> rho, global<const float> post)
      : rho0(rho[0]), rho1(rho[1]), a0(post[0]), a1(post[1]), m0(post[2]), m1(post[3]) {}

  __device__ float out0(float lane0, float attention, float mlp) const {
    return rho0 * lane0 + a0 * attention + m0 * mlp;
  }
  __device__ float out1(float lane1, float attention, float mlp) const {
    return rho1 * lane1 + a1 * attention + m1 * mlp;
  }
  // The gradients of A and M from g0, g1 of the lanes.
  __device__ float to_attention(float g0, float g1) const { return a0 * g0 + a1 * g1; }
  __device__ float to_mlp(float g0, float g1) const { return m0 * g0 + m1 * g1; }
};

// Sums over a group's rows and their columns: the gradients of rho and post.
struct LaneSums {
  float v[6] = {};  // g0 lane0, g1 lane1, g0 A, g1 A, g0 M, g1 M

  __device__ void add(float g0, float g1, float lane0, float lane1, float attention, float mlp) {
    v[0] += g0 * lane0;
    v[1] += g1 * lane1;
    v[2] += g0 * attention;
    v[3] += g1 * attention;
    v[4] += g0 * mlp;
    v[5] += g1 * mlp;
  }
  // To the group's row of partial_rho [groups, 2] and partial_post [groups, 4], either null. By the whole block.
  __device__ void store(const RowGroup& group, long long rows, global<float> partial_rho,
                        global<float> partial_post, shared_array<float, 32>& scratch) {
    MLG_UNROLL
    for (int i = 0; i < 6; ++i) v[i] = group_sum(v[i], scratch);
    if (group.thread != 0 || group.row >= rows) return;
    const long long index = group.index();
    MLG_UNROLL
    for (int i = 0; i < 6; ++i) {
      if (i < 2 && partial_rho) partial_rho[index * 2 + i] = v[i];
      if (i >= 2 && partial_post) partial_post[index * 4 + i - 2] = v[i];
    }
  }
};

}  // namespace

// qkv_split_norm_rope: a row of packed [T,W] holds H query heads, K key heads and K value heads of h
// elements, H gates and padding.
//   q, k: the heads as in head_rotation.h, gain [H] of queries alone;   v, gate: as they lie
// Backward: the rows of dpacked (+)= gradients of the heads before norm and rotation, dv + dv_xsa, dgate, and
// zeros where nothing is (an absent one counts as zero);  dgain [H] as in head_rotation.h.
//
// Determinism: tokens are independent; dgain goes through partial sums over fixed pieces of them.
#include "kernels/qk_norm_rope/cpu_head_rotation.h"
#include "kernels/qk_norm_rope/signature_qkv.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::qkv_split_norm_rope {
namespace {

using Forward = shapes::QkvSplitNormRopeForward;
using Backward = shapes::QkvSplitNormRopeBackward;

// Where the parts of a row lie. `q`, `k`: arguments of their shapes.
struct Row {
  std::int64_t tokens, heads, kv_heads, width;  // width: of a head
  std::int64_t values, gates, all;              // first element of the values and of the gates; of the row

  Row(const Launch& launch, std::uint32_t q, std::uint32_t k)
      : tokens(launch.dim(q, 0)),
        heads(launch.dim(q, 1)),
        kv_heads(launch.dim(k, 1)),
        width(launch.dim(q, 2)),
        values((heads + kv_heads) * width),
        gates(values + kv_heads * width),
        all(launch.dim(shapes::QkvSplitNormRope::packed, 1)) {}
};

template <typename T, int kWidth, int kHalf>
void forward(const Launch& launch) {
  const Rotation rotation(launch);
  const Row row(launch, Forward::q, Forward::k);
  const T* packed = launch.data<const T>(Forward::packed);
  T *q = launch.data<T>(Forward::q), *k = launch.data<T>(Forward::k), *v = launch.data<T>(Forward::v),
    *gate = launch.data<T>(Forward::gate);
  launch.parallel_for(row.tokens, row_grain(row.all), [=](std::int64_t begin, std::int64_t end) {
    HeadRotation<kWidth, kHalf> rotate(rotation, row.width);
    const std::int64_t width = rotate.width;
    for (std::int64_t t = begin; t < end; ++t) {
      const T* from = packed + t * row.all;
      for (std::int64_t head = 0; head < row.heads; ++head) {
        rotate.forward(from + head * width, rotation.gain ? rotation.gain[head] : 1.0f, rotation.offset(t),
                       q + (t * row.heads + head) * width);
      }
      for (std::int64_t head = 0; head < row.kv_heads; ++head) {
        rotate.forward(from + (row.heads + head) * width, 1.0f, rotation.offset(t),
                       k + (t * row.kv_heads + head) * width);
      }
      std::copy_n(from + row.values, row.kv_heads * width, v + t * row.kv_heads * width);
      if (gate) std::copy_n(from + row.gates, row.heads, gate + t * row.heads);
    }
  });
}

struct RunForward : Forward {
  template <typename T>
  static void run(const Launch& launch) {
    dispatch_head(launch.dim(q, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { forward<T, kWidth, kHalf>(launch); });
  }
};

template <typename T, int kWidth, int kHalf>
void backward(const Launch& launch) {
  const Rotation rotation(launch);
  const Row row(launch, Backward::dq, Backward::dk);
  const auto input = [&](std::uint32_t argument) { return launch.data<const T>(argument); };
  const T *packed = input(Backward::packed), *dq = input(Backward::dq), *dk = input(Backward::dk),
          *dv = input(Backward::dv), *dv_xsa = input(Backward::dv_xsa), *dgate = input(Backward::dgate);
  T* dpacked = launch.data<T>(Backward::dpacked);
  const bool accumulate = launch.flag(Backward::accumulate_dpacked);
  const auto add_tokens = [=](float* partial, std::int64_t begin, std::int64_t end) {
    HeadRotation<kWidth, kHalf> rotate(rotation, row.width);
    const std::int64_t width = rotate.width, values = row.kv_heads * width;
    for (std::int64_t t = begin; t < end; ++t) {
      const T* from = packed + t * row.all;
      T* to = dpacked + t * row.all;
      for (std::int64_t head = 0; head < row.heads; ++head) {
        partial[head] += rotate.backward(from + head * width, dq + (t * row.heads + head) * width,
                                         rotation.gain ? rotation.gain[head] : 1.0f, rotation.offset(t),
                                         to + head * width, accumulate);
      }
      for (std::int64_t head = 0; head < row.kv_heads; ++head) {
        const std::int64_t at = (row.heads + head) * width;
        rotate.backward(from + at, dk + (t * row.kv_heads + head) * width, 1.0f, rotation.offset(t), to + at,
                        accumulate);
      }
      const T* one = dv + t * values;
      if (dv_xsa) {
        write_row(to + row.values, values, accumulate, [=, other = dv_xsa + t * values](std::int64_t j) {
          return float(one[j]) + float(other[j]);
        });
      } else {
        write_row(to + row.values, values, accumulate, [=](std::int64_t j) { return float(one[j]); });
      }
      if (dgate) {
        write_row(to + row.gates, row.heads, accumulate,
                  [gates = dgate + t * row.heads](std::int64_t j) { return float(gates[j]); });
      }
      const std::int64_t filled = row.gates + (dgate ? row.heads : 0);
      if (!accumulate) std::fill(to + filled, to + row.all, T(0.0f));
    }
  };
  float* total = launch.workspace<float>();  // [H]; added to dgain where that is wanted
  std::fill_n(total, row.heads, 0.0f);
  sum_pieces(launch, row.tokens, row.heads, total + aligned_floats(row.heads), true, add_tokens);
  add_pieces(launch, row.tokens, row.heads, total + aligned_floats(row.heads), 0, row.heads, total);
  if (!launch.has(Backward::dgain)) return;
  for (std::int64_t head = 0; head < row.heads; ++head)
    launch.data<float>(Backward::dgain)[head] += total[head];
}

struct RunBackward : Backward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return aligned_floats(call.dim(dq, 1)) * sizeof(float) + row_sums_bytes(call.dim(dq, 0), call.dim(dq, 1));
  }
  template <typename T>
  static void run(const Launch& launch) {
    dispatch_head(launch.dim(dq, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { backward<T, kWidth, kHalf>(launch); });
  }
};

const Register registered[] = {sdk::cpu_kernel<RunForward>(), sdk::cpu_kernel<RunBackward>()};

}  // namespace
}  // namespace mulligan::cpu::qkv_split_norm_rope

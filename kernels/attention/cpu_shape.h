// What the attention kernels share: shapes, argument checks, and the cut of segments into blocks of queries.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/attention/signature.h"
#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/math/onednn_gemm.h"
#include "plugins/backends/cpu/math/tile_amx.h"
#include "plugins/backends/cpu/math/tile_pack.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {

constexpr std::size_t cache_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Which keys of its segment a query sees: those up to itself, or all.
enum class Sight { causal, bidirectional };

// q[T, H, h], k and v[T, K, h], cu[N + 1].
struct AttentionShape {
  using Inputs = shapes::Attention;

  explicit AttentionShape(const Launch& call, Sight seen = Sight::causal)
      : tokens(call.dim(Inputs::q, 0)),
        heads(call.dim(Inputs::q, 1)),
        kv_heads(call.dim(Inputs::k, 1)),
        width(call.dim(Inputs::q, 2)),
        group(heads / kv_heads),
        segments(call.dim(Inputs::cu_seqlens, 0) - 1),
        sight(seen),
        scale_log2e(static_cast<float>(call.attribute(Inputs::softmax_scale) * 1.4426950408889634)) {}

  std::int64_t q_at(std::int64_t token, std::int64_t head) const { return (token * heads + head) * width; }
  std::int64_t kv_at(std::int64_t token, std::int64_t head) const {
    return (token * kv_heads + head) * width;
  }
  std::int64_t q_stride() const { return heads * width; }
  std::int64_t kv_stride() const { return kv_heads * width; }

  std::int64_t tokens, heads, kv_heads, width, group, segments;
  Sight sight;
  float scale_log2e;  // scores are kept in units of log2(e), for exp2
};

// Up to kTile queries of one segment.
struct QueryBlock {
  std::int64_t segment_begin, segment_end, begin, count;

  // Its queries see the keys [segment_begin, keys_end()); on the diagonal the last of them in part.
  std::int64_t keys_end(Sight sight) const { return sight == Sight::causal ? begin + count : segment_end; }
  // Whether each query of the block sees another part of the keys that begin there.
  bool on_diagonal(Sight sight, std::int64_t keys_begin) const {
    return sight == Sight::causal && keys_begin == begin;
  }
};

// The query blocks of all segments, numbered in order. `first_block` [segments + 1] is workspace.
class SegmentBlocks {
 public:
  static std::size_t workspace_bytes(std::int64_t segments) {
    return cache_lines(static_cast<std::size_t>(segments + 1) * sizeof(std::int64_t));
  }

  // Throws std::runtime_error when cu does not rise from 0 to the number of tokens.
  SegmentBlocks(const AttentionShape& shape, const std::int32_t* cu, void* workspace)
      : cu_(cu), segments_(shape.segments), first_block_(static_cast<std::int64_t*>(workspace)) {
    std::int64_t blocks = 0;
    for (std::int64_t i = 0; i < segments_; ++i) {
      if (cu[i + 1] < cu[i])
        throw std::runtime_error("cu_seqlens decreases at entry " + std::to_string(i + 1));
      first_block_[i] = blocks;
      blocks += (length(i) + kTile - 1) / kTile;
    }
    first_block_[segments_] = blocks;
    if (cu[0] != 0 || cu[segments_] != shape.tokens) {
      throw std::runtime_error("cu_seqlens must start at 0 and end at the number of tokens, " +
                               std::to_string(shape.tokens));
    }
  }

  std::int64_t count() const { return first_block_[segments_]; }
  std::int64_t length(std::int64_t segment) const { return cu_[segment + 1] - cu_[segment]; }
  std::int64_t segments() const { return segments_; }

  std::int64_t blocks_of(std::int64_t segment) const {
    return first_block_[segment + 1] - first_block_[segment];
  }
  // Block i of a segment.
  QueryBlock block_of(std::int64_t segment, std::int64_t i) const {
    const std::int64_t begin = cu_[segment] + i * kTile;
    return {cu_[segment], cu_[segment + 1], begin, std::min<std::int64_t>(kTile, cu_[segment + 1] - begin)};
  }
  // Block i of all.
  QueryBlock block(std::int64_t i) const {
    const std::int64_t* after = std::upper_bound(first_block_, first_block_ + segments_ + 1, i);
    const std::int64_t segment = after - first_block_ - 1;
    return block_of(segment, i - first_block_[segment]);
  }

 private:
  const std::int32_t* cu_;
  std::int64_t segments_;
  std::int64_t* first_block_;
};

// Hands out consecutive, cache-line aligned pieces of a thread's scratch memory.
// With a null base it only counts.
class ScratchLayout {
 public:
  explicit ScratchLayout(void* base) : base_(static_cast<std::byte*>(base)) {}

  template <typename T>
  T* take(std::int64_t count) {
    T* piece = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += cache_lines(static_cast<std::size_t>(count) * sizeof(T));
    return piece;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

// Calls body.template operator()<T, Math>() with the storage type and the arithmetic for a compute dtype. bf16 is widened to f32 if
// the CPU's bf16 instructions are not faster.
template <typename Body>
decltype(auto) dispatch_math(mlg_dtype dtype, Body&& body) {
#if defined(MULLIGAN_AMX)
  if (dtype == MLG_BF16 && amx_usable())
    return std::forward<Body>(body).template operator()<bfloat16, AmxBf16Math>();
#endif
  if (dtype == MLG_BF16 && bf16_matmuls_pay())
    return std::forward<Body>(body).template operator()<bfloat16, NativeBf16Math>();
  if (dtype == MLG_BF16) return std::forward<Body>(body).template operator()<bfloat16, F32Math>();
  if (dtype == MLG_F16) return std::forward<Body>(body).template operator()<float16, F32Math>();
  return std::forward<Body>(body).template operator()<float, F32Math>();
}

}  // namespace mulligan::cpu

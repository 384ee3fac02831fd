// Attention of a device's library: the part of the seam (device.h) that computes a batch of rows of tokens,
// causal within each row.
//
// Packed: row b are the tokens [starts[b], starts[b] + lengths[b]) of one long row; starts come as three
// arrays, in elements of the tensors that they lead into. Otherwise the tokens are `rows` rows of `longest`
// each, and starts and lengths are not read.
#pragma once

#include <mulligan/tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/backends/cuda/device_argument.h"

namespace mulligan::cuda {

// What a plan is made for. q, o, do, dq [tokens, query_heads, width]; k, v, dk, dv [tokens, kv_heads, width].
struct AttentionShape {
  bool backward = false, packed = false;
  std::int64_t tokens = 0, query_heads = 0, kv_heads = 0, width = 0;
  std::int64_t rows = 0;     // packed: at most so many
  std::int64_t longest = 0;  // tokens of a row; packed: at most so many
  double scale = 1;          // of the dot products q k
  mlg_dtype dtype = MLG_BF16;

  auto operator<=>(const AttentionShape&) const = default;
};

// "bf16 attention, backward, of 98304 tokens in up to 128 rows of up to 2048, 8 heads over 4 of width 64"
std::string describe(const AttentionShape& shape);

// `stats`: f32, the logarithm of each softmax's denominator: packed [tokens, query_heads], otherwise [rows,
// query_heads, longest]. Forward writes o and stats; backward reads them and writes dq, dk and dv.
struct AttentionArguments {
  DeviceArgument q, k, v, o, stats, d_o, dq, dk, dv;
  // Packed, int32: [rows + 1] where rows start in q, o, do and dq; in k, v, dk and dv; in stats; [rows]
  // lengths. Rows of length 0 may lie anywhere.
  DeviceArgument query_starts, kv_starts, stats_starts, lengths;
};

// A plan for one shape; used by every call of that shape.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual std::size_t workspace_bytes() const = 0;  // contents undefined, aligned to 256 bytes
  // Enqueues it; may be captured. Throws std::runtime_error if the library does not execute its plan.
  virtual void run(const AttentionArguments& arguments, void* workspace) = 0;
};

}  // namespace mulligan::cuda

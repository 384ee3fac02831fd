// Matmuls cut into tiles by shape alone (MatmulPlan), each a one-threaded oneDNN matmul: what matmul
// and the kernels that work on a matmul's result while it is in the cache are made of.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/math/matmul_plan.h"
#include "plugins/backends/cpu/math/onednn_gemm.h"
#include "plugins/backends/cpu/math/padded_rows.h"

namespace mulligan::cpu {

// c[batch, m, n] = alpha op(a) op(b) + beta c; a and b both f32, both bf16 or both f16, c f32 or like them.
struct TiledMatmulShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  mlg_dtype input = MLG_F32, output = MLG_F32;
  // bf16 or f16 with `input` and `output` f32: the dtype of b. Each tile of b is widened into memory of its thread just before the
  // f32 matmul that reads it.
  std::optional<mlg_dtype> stored_b = std::nullopt;
  float alpha = 1.0f, beta = 0.0f;
};

// Every sum is the same for any number of threads. Made under batch_invariant_matmuls(), and where a is not
// transposed, a row of c is the same for any number of rows, too (padded_rows.h).
class TiledMatmul {
 public:
  // Throws std::runtime_error where oneDNN has no such matmul whose rows do not depend on their place.
  explicit TiledMatmul(const TiledMatmulShape& shape);

  std::size_t workspace_bytes() const { return partial_offset_ + partial_bytes_; }
  // Elements [at, at + count) of c that are final: called once for each piece of a row of c, by any thread.
  using Finish = std::function<void(std::int64_t at, std::int64_t count)>;
  // `launch` lends its threads and workspace. `term`: what beta multiplies in c's place, of c's type; nullptr: c. Throws
  // std::runtime_error where oneDNN fails.
  void run(const Launch& launch, const void* a, const void* b, void* c, const Finish& finish = {},
           const void* term = nullptr) const;

 private:
  void make_tiles(bool bf16);
  // Of an element as the tiles read a, and write c.
  std::int64_t a_bytes() const { return shape_.input != MLG_F32 && !widen_ ? 2 : 4; }
  std::int64_t c_bytes() const { return shape_.output != MLG_F32 && !partial_ ? 2 : 4; }
  const void* widened(const Launch& launch, const void* from, std::int64_t count, std::size_t offset) const;
  // Of the elements [rows, columns] at `from`, rows `stride` apart, in f32, rows tile_stride() apart.
  void widen_tile(const std::byte* from, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                  float* to) const;
  // Distance in elements between rows of a widened tile of b.
  std::int64_t tile_stride() const { return shape_.transpose_b ? plan_.tile_k : plan_.tile_n; }
  void add_pieces(const Launch& launch, void* c, const void* term, const Finish& finish) const;

  TiledMatmulShape shape_;
  bool fixed_rows_;
  MatmulPlan plan_;
  bool widen_ = false;    // inputs are converted to f32 in the workspace
  bool partial_ = false;  // the tiles write partial sums in f32 to the workspace; add_pieces() adds them to c
  int slots_;
  // One per combination of a full (0) or last, shorter tile (1) in m, n and k.
  std::array<std::unique_ptr<Gemm>, 8> tiles_;
  std::optional<PaddedRows> padded_;  // of the last rows, where they do not fill a tile of fixed height
  // Of a slot: oneDNN's and the padded rows, and after them a tile of b.
  std::size_t scratch_bytes_ = 0, padded_offset_ = 0, widened_bytes_ = 0;
  std::size_t a_offset_ = 0, b_offset_ = 0, partial_offset_ = 0, partial_bytes_ = 0;
};

}  // namespace mulligan::cpu

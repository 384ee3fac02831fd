// Matrix products cut into tiles by shape alone (MatmulPlan), each a one-threaded oneDNN product: what matmul
// and the kernels that work on a product's result while it is in the cache are made of.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/kernels/matmul_plan.h"
#include "plugins/backends/cpu/kernels/onednn_gemm.h"

namespace mulligan::cpu {

// c[batch, m, n] = alpha op(a) op(b) + beta c; a and b both f32, both bf16 or both f16, c f32 or like them.
struct ProductShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  mlg_dtype input = MLG_F32, output = MLG_F32;
  float alpha = 1.0f, beta = 0.0f;
};

// Every sum is the same for any number of threads.
class TiledProduct {
 public:
  // Throws std::runtime_error where oneDNN has no such product.
  explicit TiledProduct(const ProductShape& shape);

  std::size_t workspace_bytes() const { return partial_offset_ + partial_bytes_; }
  // Elements [at, at + count) of c that are final: called once for each piece of a row of c, by any thread.
  using Finish = std::function<void(std::int64_t at, std::int64_t count)>;
  // `launch` lends its threads and workspace. Throws std::runtime_error where oneDNN fails.
  void run(const Launch& launch, const void* a, const void* b, void* c, const Finish& finish = {}) const;

 private:
  void make_tiles(bool bf16);
  const void* widened(const Launch& launch, const void* from, std::int64_t count, std::size_t offset) const;
  void add_pieces(const Launch& launch, void* c, const Finish& finish) const;

  ProductShape shape_;
  MatmulPlan plan_;
  bool widen_ = false;  // inputs are converted to f32 in the workspace
  bool partial_ =
      false;  // the tiles write f32 partial products to the workspace, add_pieces() makes c of them
  int slots_;
  // One per combination of a full (0) or last, shorter tile (1) in m, n and k.
  std::array<std::unique_ptr<Gemm>, 8> tiles_;
  std::size_t scratch_bytes_ = 0, a_offset_ = 0, b_offset_ = 0, partial_offset_ = 0, partial_bytes_ = 0;
};

}  // namespace mulligan::cpu

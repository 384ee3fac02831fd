// matmul: c = alpha op(a) op(b) + beta c. Tiles of c (MatmulPlan) are one-threaded oneDNN products that run
// in parallel, so that every sum is the same for any number of threads: oneDNN itself divides the inner
// dimension by the number of threads when the output is small, and its bits then change with it (seen in 2.6
// at 512 x 8 x 4096 with 2 threads and at 8192 x 512 x 4096 with 64).
//
// Where the inner dimension is cut, the pieces' partial products [count_k, batch, m, n] f32 are added in
// order. Where oneDNN has no vectorised bf16 product (no AVX512-BF16, AMX or the like), a and b are widened
// to f32 first.

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>

#include "plugins/backends/common/shapes/matmul.h"
#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/kernels/matmul_plan.h"
#include "plugins/backends/cpu/kernels/onednn_gemm.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {
namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// A call made ready.
class Product {
 public:
  explicit Product(const Launch& call);

  std::size_t workspace_bytes() const { return partial_offset_ + partial_bytes_; }
  void run(const Launch& launch) const;

 private:
  static MatmulPlan plan_of(const Launch& call);
  void make_tiles(bool bf16);
  const void* widened(const Launch& launch, std::uint32_t argument, std::size_t offset) const;
  void add_pieces(const Launch& launch) const;

  MatmulPlan plan_;
  bool transpose_a_, transpose_b_, input_bf16_, output_bf16_;
  float alpha_, beta_;
  bool widen_ = false;  // bf16 inputs are converted to f32 in the workspace
  bool partial_ =
      false;  // the tiles write f32 partial products to the workspace, add_pieces() makes c of them
  int slots_;
  // One per combination of a full (0) or last, shorter tile (1) in m, n and k.
  std::array<std::unique_ptr<Gemm>, 8> tiles_;
  std::size_t scratch_bytes_ = 0, a_offset_ = 0, b_offset_ = 0, partial_offset_ = 0, partial_bytes_ = 0;
};

MatmulPlan Product::plan_of(const Launch& call) {
  const shapes::Matmul::Extents e = shapes::Matmul::extents(call);
  return MatmulPlan(e.batch, e.m, e.n, e.k);
}

Product::Product(const Launch& call)
    : plan_(plan_of(call)),
      transpose_a_(call.attribute(shapes::Matmul::transpose_a) != 0),
      transpose_b_(call.attribute(shapes::Matmul::transpose_b) != 0),
      input_bf16_(call.dtype(shapes::Matmul::a) == MLG_BF16),
      output_bf16_(call.dtype(shapes::Matmul::c) == MLG_BF16),
      alpha_(static_cast<float>(call.attribute(shapes::Matmul::alpha))),
      beta_(static_cast<float>(call.attribute(shapes::Matmul::beta))),
      slots_(thread_count()) {
  make_tiles(input_bf16_);
  if (widen_) make_tiles(false);
  for (const auto& tile : tiles_) {
    if (tile) scratch_bytes_ = std::max(scratch_bytes_, aligned(tile->scratch_bytes()));
  }
  const std::size_t output = static_cast<std::size_t>(plan_.batch * plan_.m * plan_.n);
  a_offset_ = scratch_bytes_ * static_cast<std::size_t>(slots_);
  b_offset_ = a_offset_ +
              (widen_ ? aligned(static_cast<std::size_t>(call.size(shapes::Matmul::a)) * sizeof(float)) : 0);
  partial_offset_ =
      b_offset_ +
      (widen_ ? aligned(static_cast<std::size_t>(call.size(shapes::Matmul::b)) * sizeof(float)) : 0);
  partial_bytes_ = partial_ ? output * static_cast<std::size_t>(plan_.count_k()) * sizeof(float) : 0;
}

// Sets widen_ instead of making them when oneDNN has no fast product of these types.
void Product::make_tiles(bool bf16) {
  const auto extent = [](std::int64_t whole, std::int64_t tile, bool last) {
    return last ? whole - whole / tile * tile : (whole >= tile ? tile : 0);
  };
  partial_ = plan_.count_k() > 1 || (widen_ && output_bf16_);
  for (std::size_t variant = 0; variant < tiles_.size(); ++variant) {
    GemmShape shape;
    shape.m = extent(plan_.m, plan_.tile_m, variant & 1);
    shape.n = extent(plan_.n, plan_.tile_n, variant & 2);
    shape.k = extent(plan_.k, plan_.tile_k, variant & 4);
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) continue;
    shape.a_row = transpose_a_ ? 1 : plan_.k;
    shape.a_column = transpose_a_ ? plan_.m : 1;
    shape.b_row = transpose_b_ ? 1 : plan_.n;
    shape.b_column = transpose_b_ ? plan_.k : 1;
    shape.c_row = plan_.n;
    shape.ab_bf16 = bf16;
    shape.c_bf16 = output_bf16_ && !partial_;
    shape.alpha = partial_ ? 1.0f : alpha_;
    shape.beta = partial_ ? 0.0f : beta_;
    tiles_[variant] = make_gemm(shape, slots_);
    if (bf16 && (!tiles_[variant] || !tiles_[variant]->fast())) {
      widen_ = true;
      return;
    }
    if (!tiles_[variant])
      throw std::runtime_error("kernel matmul: oneDNN has no f32 product for this processor");
  }
}

// The argument as the tiles read it: itself, or converted to f32 at `offset` of the workspace.
const void* Product::widened(const Launch& launch, std::uint32_t argument, std::size_t offset) const {
  if (!widen_) return launch.tensor(argument).data;
  const auto* from = launch.data<const bfloat16>(argument);
  auto* to = reinterpret_cast<float*>(launch.workspace<std::byte>() + offset);
  launch.parallel_for(launch.size(argument), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = from[i];
  });
  return to;
}

void Product::run(const Launch& launch) const {
  const auto* a = static_cast<const std::byte*>(widened(launch, shapes::Matmul::a, a_offset_));
  const auto* b = static_cast<const std::byte*>(widened(launch, shapes::Matmul::b, b_offset_));
  std::byte* workspace = launch.workspace<std::byte>();
  auto* c = partial_ ? workspace + partial_offset_ : launch.data<std::byte>(shapes::Matmul::c);
  const std::int64_t ab_bytes = input_bf16_ && !widen_ ? 2 : 4, c_bytes = output_bf16_ && !partial_ ? 2 : 4;
  const MatmulPlan& p = plan_;
  std::atomic<bool> failed = false;
  const std::int64_t count_k = p.count_k(), count_n = p.count_n(), count_m = p.count_m();

  launch.parallel_for(p.tiles_of_output() * count_k, 1, [&](std::int64_t begin, std::int64_t end) {
    const int slot = thread_index();
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t tile = task / count_k;
      const std::int64_t k = task % count_k * p.tile_k;
      const std::int64_t n = tile % count_n * p.tile_n;
      const std::int64_t m = tile / count_n % count_m * p.tile_m;
      const std::int64_t batch = tile / (count_n * count_m);
      const std::size_t variant =
          (p.m - m < p.tile_m ? 1u : 0u) | (p.n - n < p.tile_n ? 2u : 0u) | (p.k - k < p.tile_k ? 4u : 0u);
      const std::int64_t a_at = batch * p.m * p.k + (transpose_a_ ? k * p.m + m : m * p.k + k);
      const std::int64_t b_at = batch * p.k * p.n + (transpose_b_ ? n * p.k + k : k * p.n + n);
      const std::int64_t c_at = ((task % count_k * p.batch + batch) * p.m + m) * p.n + n;
      if (!tiles_[variant]->run(slot, a + a_at * ab_bytes, b + b_at * ab_bytes, c + c_at * c_bytes,
                                workspace + scratch_bytes_ * static_cast<std::size_t>(slot))) {
        failed = true;
      }
    }
  });
  if (failed)
    throw std::runtime_error(
        "oneDNN refused to run a product that it had prepared; it may lack memory: use a smaller batch or "
        "model");
  if (partial_) add_pieces(launch);
}

void Product::add_pieces(const Launch& launch) const {
  const auto* partial = reinterpret_cast<const float*>(launch.workspace<std::byte>() + partial_offset_);
  const std::int64_t size = plan_.batch * plan_.m * plan_.n, pieces = plan_.count_k();
  const float alpha = alpha_, beta = beta_;
  dispatch_compute(launch.dtype(shapes::Matmul::c), [&]<typename T>() {
    T* c = launch.data<T>(shapes::Matmul::c);
    launch.parallel_for(size, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t kBlock = 1024;  // stays in the first-level cache while the pieces are added
      float sum[kBlock];
      for (std::int64_t at = begin; at < end; at += kBlock) {
        const std::int64_t length = std::min(kBlock, end - at);
        std::copy_n(partial + at, length, sum);
        for (std::int64_t piece = 1; piece < pieces; ++piece) {
          const float* more = partial + piece * size + at;
          for (std::int64_t i = 0; i < length; ++i) sum[i] += more[i];
        }
        if (beta == 0.0f) {
          for (std::int64_t i = 0; i < length; ++i) c[at + i] = T(alpha * sum[i]);
        } else {
          for (std::int64_t i = 0; i < length; ++i) c[at + i] = T(alpha * sum[i] + beta * c[at + i]);
        }
      }
    });
  });
}

struct Matmul : shapes::Matmul {
  using State = Product;
  static std::unique_ptr<Product> prepare(sdk::CallChecks& call) {
    check(call);
    auto product = std::make_unique<Product>(call);
    call.workspace(product->workspace_bytes());
    return product;
  }
  static void run(const Launch& launch) { launch.state<const Product>()->run(launch); }
};

const Register registered = sdk::cpu_kernel<Matmul>();

}  // namespace
}  // namespace mulligan::cpu

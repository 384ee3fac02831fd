// Tiles of c are one-threaded oneDNN matmuls that run in parallel: oneDNN itself divides the inner dimension
// by the number of threads when the output is small, and its bits then change with it (seen in 2.6 at 512 x 8
// x 4096 with 2 threads and at 8192 x 512 x 4096 with 64).
//
// If the inner dimension is cut, the pieces' partial sums [count_k, batch, m, n] f32 are added in order (a plan of fixed rows does not
// cut it). Tiles of a 16-bit b with f32 a are widened one by one (stored_b). For f16, and if bf16 matmuls do not pay (Gemm::fast), a
// and b are widened to f32 first.
#include "plugins/backends/cpu/math/tiled_matmul.h"

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "plugins/backends/cpu/math/equal_rows.h"
#include "plugins/backends/cpu/math/matmul_mode.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {
namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace

TiledMatmul::TiledMatmul(const TiledMatmulShape& shape)
    : shape_(shape),
      fixed_rows_(batch_invariant_matmuls() && !shape.transpose_a),
      plan_(shape.batch, shape.m, shape.n, shape.k, fixed_rows_),
      slots_(thread_count()) {
  widen_ = shape_.input == MLG_F16;
  if (!widen_) make_tiles(shape_.input == MLG_BF16);
  if (widen_) make_tiles(false);
  for (const auto& tile : tiles_) {
    if (tile) scratch_bytes_ = std::max(scratch_bytes_, aligned(tile->scratch_bytes()));
  }
  if (fixed_rows_ && plan_.m % plan_.tile_m != 0) {
    padded_.emplace(plan_, a_bytes(), c_bytes(), !partial_ && shape_.beta != 0.0f);
    padded_offset_ = scratch_bytes_;
    scratch_bytes_ += aligned(padded_->bytes());
  }
  const auto floats = [](std::int64_t count) {
    return aligned(static_cast<std::size_t>(count) * sizeof(float));
  };
  if (shape_.stored_b)
    widened_bytes_ = floats((shape_.transpose_b ? plan_.tile_n : plan_.tile_k) * tile_stride());
  const std::size_t output = static_cast<std::size_t>(plan_.batch * plan_.m * plan_.n);
  a_offset_ = (scratch_bytes_ + widened_bytes_) * static_cast<std::size_t>(slots_);
  b_offset_ = a_offset_ + (widen_ ? floats(plan_.batch * plan_.m * plan_.k) : 0);
  partial_offset_ = b_offset_ + (widen_ ? floats(plan_.batch * plan_.k * plan_.n) : 0);
  partial_bytes_ = partial_ ? output * static_cast<std::size_t>(plan_.count_k()) * sizeof(float) : 0;
}

// Sets widen_ instead of making them when oneDNN has no fast matmul of these types.
void TiledMatmul::make_tiles(bool bf16) {
  const auto extent = [](std::int64_t whole, std::int64_t tile, bool last) {
    return last ? whole - whole / tile * tile : (whole >= tile ? tile : 0);
  };
  partial_ = plan_.count_k() > 1 || (widen_ && shape_.output != MLG_F32);
  for (std::size_t variant = 0; variant < tiles_.size(); ++variant) {
    GemmShape shape;
    shape.m = fixed_rows_ ? (variant & 1 ? 0 : plan_.tile_m) : extent(plan_.m, plan_.tile_m, variant & 1);
    shape.n = extent(plan_.n, plan_.tile_n, variant & 2);
    shape.k = extent(plan_.k, plan_.tile_k, variant & 4);
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) continue;
    shape.a_row = shape_.transpose_a ? 1 : plan_.k;
    shape.a_column = shape_.transpose_a ? plan_.m : 1;
    const std::int64_t b_stride = shape_.stored_b ? tile_stride() : shape_.transpose_b ? plan_.k : plan_.n;
    shape.b_row = shape_.transpose_b ? 1 : b_stride;
    shape.b_column = shape_.transpose_b ? b_stride : 1;
    shape.c_row = plan_.n;
    shape.ab_bf16 = bf16;
    shape.c_bf16 = shape_.output == MLG_BF16 && !partial_;
    shape.alpha = partial_ ? 1.0f : shape_.alpha;
    shape.beta = partial_ ? 0.0f : shape_.beta;
    tiles_[variant] = make_gemm(shape, slots_);
    if (bf16 && (!tiles_[variant] || !tiles_[variant]->fast())) {
      widen_ = true;
      return;
    }
    if (!tiles_[variant]) throw std::runtime_error("kernel matmul: oneDNN has no f32 matmul for this CPU");
    if (fixed_rows_) require_equal_rows(*tiles_[variant], shape);
  }
}

// The operand as the tiles read it: itself, or converted to f32 at `offset` of the workspace.
const void* TiledMatmul::widened(const Launch& launch, const void* operand, std::int64_t count,
                                 std::size_t offset) const {
  if (!widen_) return operand;
  auto* to = reinterpret_cast<float*>(launch.workspace<std::byte>() + offset);
  dispatch_compute(shape_.input, [&]<typename T>() {
    const T* from = static_cast<const T*>(operand);
    launch.parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = from[i];
    });
  });
  return to;
}

void TiledMatmul::widen_tile(const std::byte* from, std::int64_t rows, std::int64_t columns,
                             std::int64_t stride, float* to) const {
  dispatch_compute(*shape_.stored_b, [&]<typename T>() {
    const T* row = reinterpret_cast<const T*>(from);
    for (std::int64_t i = 0; i < rows; ++i, row += stride, to += tile_stride()) {
      for (std::int64_t j = 0; j < columns; ++j) to[j] = row[j];
    }
  });
}

void TiledMatmul::run(const Launch& launch, const void* a_operand, const void* b_operand, void* c_result,
                      const Finish& finish, const void* term) const {
  const MatmulPlan& p = plan_;
  const auto* a = static_cast<const std::byte*>(widened(launch, a_operand, p.batch * p.m * p.k, a_offset_));
  const auto* b = static_cast<const std::byte*>(widened(launch, b_operand, p.batch * p.k * p.n, b_offset_));
  std::byte* workspace = launch.workspace<std::byte>();
  auto* c = partial_ ? workspace + partial_offset_ : static_cast<std::byte*>(c_result);
  const std::int64_t a_bytes = this->a_bytes(), b_bytes = shape_.stored_b ? 2 : a_bytes;
  const std::size_t slot_bytes = scratch_bytes_ + widened_bytes_;
  const std::int64_t c_bytes = this->c_bytes();
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
      const bool short_rows = p.m - m < p.tile_m;
      const std::size_t variant = (short_rows && !fixed_rows_ ? 1u : 0u) | (p.n - n < p.tile_n ? 2u : 0u) |
                                  (p.k - k < p.tile_k ? 4u : 0u);
      const std::int64_t a_at = batch * p.m * p.k + (shape_.transpose_a ? k * p.m + m : m * p.k + k);
      const std::int64_t b_at = batch * p.k * p.n + (shape_.transpose_b ? n * p.k + k : k * p.n + n);
      const std::int64_t c_at = ((task % count_k * p.batch + batch) * p.m + m) * p.n + n;
      std::byte* scratch = workspace + slot_bytes * static_cast<std::size_t>(slot);
      const std::int64_t rows = std::min(p.tile_m, p.m - m), columns = std::min(p.tile_n, p.n - n);
      for (std::int64_t row = 0; term && !partial_ && row < rows;
           ++row) {  // in the cache when the matmul adds to it
        const std::int64_t at = (c_at + row * p.n) * c_bytes;
        std::memcpy(c + at, static_cast<const std::byte*>(term) + at,
                    static_cast<std::size_t>(columns * c_bytes));
      }
      const std::byte* b_tile = b + b_at * b_bytes;
      if (shape_.stored_b) {
        const std::int64_t inner = std::min(p.tile_k, p.k - k);
        auto* widened = reinterpret_cast<float*>(scratch + scratch_bytes_);
        widen_tile(b_tile, shape_.transpose_b ? columns : inner, shape_.transpose_b ? inner : columns,
                   shape_.transpose_b ? p.k : p.n, widened);
        b_tile = reinterpret_cast<const std::byte*>(widened);
      }
      const auto matmul = [&](const std::byte* a_tile, std::byte* c_tile) {
        if (!tiles_[variant]->run(slot, a_tile, b_tile, c_tile, scratch)) failed = true;
      };
      if (fixed_rows_ && short_rows) {
        padded_->run(scratch + padded_offset_, rows, columns, a + a_at * a_bytes, c + c_at * c_bytes, matmul);
      } else {
        matmul(a + a_at * a_bytes, c + c_at * c_bytes);
      }
      if (!finish || partial_) continue;
      for (std::int64_t row = 0; row < rows; ++row) finish(c_at + row * p.n, columns);
    }
  });
  if (failed)
    throw std::runtime_error(
        "oneDNN refused to run a matmul that it had prepared; it may lack memory: use a smaller batch or "
        "model");
  if (partial_) add_pieces(launch, c_result, term ? term : c_result, finish);
}

void TiledMatmul::add_pieces(const Launch& launch, void* result, const void* term,
                             const Finish& finish) const {
  const auto* partial = reinterpret_cast<const float*>(launch.workspace<std::byte>() + partial_offset_);
  const std::int64_t size = plan_.batch * plan_.m * plan_.n, pieces = plan_.count_k();
  const float alpha = shape_.alpha, beta = shape_.beta;
  dispatch_compute(shape_.output, [&]<typename T>() {
    T* c = static_cast<T*>(result);
    const T* added = static_cast<const T*>(term);
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
          for (std::int64_t i = 0; i < length; ++i) c[at + i] = T(alpha * sum[i] + beta * added[at + i]);
        }
        if (finish) finish(at, length);
      }
    });
  });
}

}  // namespace mulligan::cpu

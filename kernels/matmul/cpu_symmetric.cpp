// symmetric_matmul: c = alpha op(a) op(b) + beta c where the caller knows that the result equals its
// transpose. Each panel of rows is computed up to its diagonal as a one-threaded matmul,
// and copied to the upper triangle while it is in the cache. Panels of h rows compute (1 + h/n) / 2 of the
// whole matmul, and less if the matmuls skip what lies beyond the diagonal (GemmShape::diagonal). The panels
// are a function of the shape, so the bits do not depend on the number of threads.
//
// f16, results that fit into one panel, and bf16 if no matmul skips anything are computed as a whole matmul. oneDNN's matmuls
// on the matrix unit take dense operands only, and the tiles of a triangle are not dense. oneDNN's alternative for them is
// slower than computing both halves.

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernels/matmul/cpu_mirror.h"
#include "kernels/matmul/signature_symmetric.h"
#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/math/onednn_gemm.h"
#include "plugins/backends/cpu/math/tiled_matmul.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu::symmetric_matmul {
namespace {

// Fewer rows compute less beyond the diagonal, unless matmuls skip that; more rows make faster matmuls. Columns are cut
// so that wide matrices give enough pieces to share out.
constexpr std::int64_t kPanelRows = 128, kSmallPanelRows = 64, kLarge = 512, kPanelColumns = 512;

std::int64_t panel_rows(const GemmShape& whole) {
  const std::int64_t rows = whole.n < kLarge ? kSmallPanelRows : kPanelRows;
  return takes_packed_operands(whole) ? 2 * rows : rows;
}

class SymmetricPanels {
 public:
  explicit SymmetricPanels(const Launch& call);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void run(const Launch& launch) const;

 private:
  struct Piece {
    std::int64_t row, column, rows, columns;
    Gemm* gemm;  // of gemms_
  };
  void make_pieces(const GemmShape& whole);

  template <typename T>
  void run_pieces(const Launch& launch) const;

  std::int64_t batch_, n_, k_;
  bool transpose_a_, transpose_b_;
  using Extents =
      std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // rows, columns, columns left of the diagonal
  std::map<Extents, std::unique_ptr<Gemm>> gemms_;
  std::vector<Piece> pieces_;           // of one matrix, the largest first
  std::unique_ptr<TiledMatmul> whole_;  // instead of pieces
  std::size_t scratch_bytes_ = 0, workspace_bytes_ = 0;
};

SymmetricPanels::SymmetricPanels(const Launch& call)
    : transpose_a_(call.flag(shapes::Matmul::transpose_a)),
      transpose_b_(call.flag(shapes::Matmul::transpose_b)) {
  const shapes::Matmul::Extents e = shapes::Matmul::extents(call);
  batch_ = e.batch;
  n_ = e.n;
  k_ = e.k;
  const mlg_dtype input = call.dtype(shapes::Matmul::a), output = call.dtype(shapes::Matmul::c);
  const auto alpha = call.number(shapes::Matmul::alpha);
  const auto beta = call.number(shapes::Matmul::beta);
  GemmShape shape;
  shape.m = shape.n = n_;
  shape.k = k_;
  shape.a_row = transpose_a_ ? 1 : k_;
  shape.a_column = transpose_a_ ? n_ : 1;
  shape.b_row = transpose_b_ ? 1 : n_;
  shape.b_column = transpose_b_ ? k_ : 1;
  shape.c_row = n_;
  shape.ab_bf16 = input == MLG_BF16;
  shape.c_bf16 = output == MLG_BF16;
  shape.alpha = alpha;
  shape.beta = beta;
  shape.diagonal = 0;
  const bool halves = input == MLG_F32 || (shape.ab_bf16 && shape.c_bf16 && takes_packed_operands(shape));
  if (!halves || n_ <= kSmallPanelRows) {
    TiledMatmulShape all{e.batch, e.m, e.n, e.k, transpose_a_, transpose_b_};
    all.input = input;
    all.output = output;
    all.alpha = alpha;
    all.beta = beta;
    whole_ = std::make_unique<TiledMatmul>(all);
    workspace_bytes_ = whole_->workspace_bytes();
    return;
  }
  make_pieces(shape);
  workspace_bytes_ = scratch_bytes_ * static_cast<std::size_t>(thread_count());
}

void SymmetricPanels::make_pieces(const GemmShape& whole) {
  const std::int64_t panel = panel_rows(whole);
  for (std::int64_t row = 0; row < n_; row += panel) {
    const std::int64_t rows = std::min(panel, n_ - row);
    // A panel's diagonal block lies in one piece: kPanelColumns is a multiple of both heights.
    for (std::int64_t column = 0; column < row + rows; column += kPanelColumns) {
      const std::int64_t columns = std::min(kPanelColumns, row + rows - column);
      GemmShape shape = whole;
      shape.diagonal = std::min(row - column, columns);
      std::unique_ptr<Gemm>& gemm = gemms_[{rows, columns, shape.diagonal}];
      if (!gemm) {
        shape.m = rows;
        shape.n = columns;
        gemm = make_gemm(shape, thread_count());
        if (!gemm)
          throw std::runtime_error("kernel symmetric_matmul: oneDNN has no such matmul for this CPU");
        scratch_bytes_ = std::max(scratch_bytes_, (gemm->scratch_bytes() + 255) / 256 * 256);
      }
      pieces_.push_back({row, column, rows, columns, gemm.get()});
    }
  }
  std::ranges::stable_sort(pieces_, std::greater<>(), [](const Piece& p) { return p.rows * p.columns; });
}

void SymmetricPanels::run(const Launch& launch) const {
  if (whole_) {
    return whole_->run(launch, launch.tensor(shapes::Matmul::a).data, launch.tensor(shapes::Matmul::b).data,
                       launch.tensor(shapes::Matmul::c).data);
  }
  if (launch.dtype(shapes::Matmul::a) == MLG_BF16) return run_pieces<sdk::bfloat16>(launch);
  run_pieces<float>(launch);
}

template <typename T>
void SymmetricPanels::run_pieces(const Launch& launch) const {
  const auto* a = launch.data<const T>(shapes::Matmul::a);
  const auto* b = launch.data<const T>(shapes::Matmul::b);
  auto* c = launch.data<T>(shapes::Matmul::c);
  std::byte* scratch = launch.workspace<std::byte>();
  std::atomic<bool> failed = false;

  // Pieces of one matrix follow each other: its operands stay in the cache. No piece touches what another
  // reads or writes: it copies to columns beyond the panels of the rows there.
  const auto count = static_cast<std::int64_t>(pieces_.size());
  launch.parallel_for(batch_ * count, 1, [&](std::int64_t begin, std::int64_t end) {
    const int slot = thread_index();
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t item = task / count;
      const Piece& p = pieces_[static_cast<std::size_t>(task % count)];
      const T* left = a + item * n_ * k_ + p.row * (transpose_a_ ? 1 : k_);
      const T* right = b + item * n_ * k_ + p.column * (transpose_b_ ? k_ : 1);
      T* result = c + item * n_ * n_;
      if (!p.gemm->run(slot, left, right, result + p.row * n_ + p.column,
                       scratch + scratch_bytes_ * static_cast<std::size_t>(slot))) {
        failed = true;
      }
      mirror_rows(result, n_, p.row, p.row + p.rows, p.column, p.column + p.columns);
    }
  });
  if (failed)
    throw std::runtime_error(
        "oneDNN refused to run a matmul that it had prepared; it may lack memory: use a smaller batch or "
        "model");
}

struct SymmetricMatmul : shapes::SymmetricMatmul {
  using State = SymmetricPanels;
  static std::unique_ptr<SymmetricPanels> prepare(const Launch& call) {
    return std::make_unique<SymmetricPanels>(call);
  }
  static void run(const Launch& launch) { launch.state<const SymmetricPanels>()->run(launch); }
};

const Register registered = sdk::cpu_kernel<SymmetricMatmul>();

}  // namespace
}  // namespace mulligan::cpu::symmetric_matmul

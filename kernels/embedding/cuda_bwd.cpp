#include <mulligan/cuda/row_plan.hpp>

#include <bit>

#include "kernels/embedding/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "embedding/cuda_bwd.cu.inc"

using sdk::CudaArgument;
constexpr std::uint32_t kSortThreads = kSortWarps * 32;

CudaArgument ints(CudaCall& call, std::int64_t count) {
  return call.workspace(static_cast<std::size_t>(count) * sizeof(int));
}

struct SortedIds {
  CudaArgument keys, order;
};

// The launches that sort `tokens` ids of [0, vocabulary), the wrong ones last.
SortedIds sort_ids(CudaCall& call, std::uint32_t ids, int tokens, int vocabulary) {
  const int bits = std::bit_width(static_cast<unsigned>(vocabulary));
  const int passes = (bits + 7) / 8, digit_bits = (bits + passes - 1) / passes;
  const std::int64_t chunks = (std::int64_t{tokens} + kChunk - 1) / kChunk, counts = chunks << digit_bits;
  call.constant("digit_bits", digit_bits);
  const CudaArgument totals = ints(call, counts);
  const SortedIds buffers[] = {{ints(call, tokens), ints(call, tokens)},
                               {ints(call, tokens), ints(call, tokens)}};
  SortedIds sorted{call.tensor(ids), call.null()};
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = pass * digit_bits;
    const SortedIds& next = buffers[pass % 2];
    call.launch(MLG_INSTANCE(count_digits), {chunks, 1, 1}, {kSortThreads, 1, 1}, sorted.keys, totals, tokens,
                vocabulary, shift);
    call.launch(MLG_INSTANCE(scan_counts), {1, 1, 1}, {kSortThreads, 1, 1}, totals, static_cast<int>(counts));
    call.launch(MLG_INSTANCE(move_tokens), {chunks, 1, 1}, {kSortThreads, 1, 1}, sorted.keys, sorted.order,
                totals, next.keys, next.order, tokens, vocabulary, shift);
    sorted = next;
  }
  return sorted;
}

struct Backward : shapes::EmbeddingBackward {
  static void plan(CudaCall& call) {
    const std::int64_t width = call.dim(dx, 1), rows = call.dim(dtable, 0), tokens = call.dim(ids, 0);
    if (tokens == 0 || rows == 0 || width == 0) return;
    const SortedIds sorted = sort_ids(call, ids, static_cast<int>(tokens), static_cast<int>(rows));
    const CudaArgument starts = ints(call, rows + 1);
    constexpr std::int64_t kThreads = 128;
    call.launch(MLG_INSTANCE(find_rows), {rows / kThreads + 1, 1, 1}, {kThreads, 1, 1}, sorted.keys, starts,
                static_cast<int>(tokens), rows + 1);
    sdk::dispatch_rows(call, dx, width, {dx, dtable}, [&]<typename T, int N>() {
      // One access per thread, as long as rows allow: a group then has the more rows under way.
      const sdk::RowPlan plan(call, rows, width, N, {.values = 12, .few = 1});
      CudaArgument partial = call.null();
      if (tokens > kPiece) {
        const std::int64_t pieces = (tokens + kPiece - 1) / kPiece;
        partial = call.workspace(static_cast<std::size_t>(pieces * width) * sizeof(float));
        // A block holds one group or more; the blocks after the last group end at once.
        call.launch(MLG_INSTANCE(add_pieces, T, N), {pieces, 1, 1}, plan.block(), sorted.keys, sorted.order,
                    starts, dx, partial, rows, pieces);
      }
      call.launch(MLG_INSTANCE(add_token_rows, T, N), plan, sorted.order, starts, dx, partial, dtable,
                  static_cast<int>(tokens), rows);
    });
  }
};

const Register registered = sdk::cuda_kernel<Backward>(kSource);

}  // namespace
}  // namespace mulligan::cuda

// embedding_fwd: x[T,d] = table[ids[T]]          embedding_bwd: dtable[ids[t]] += dx[t]
//
// Both refuse ids outside [0, V) when they run. Determinism: the backward pass sorts the tokens by id (stable
// counting sort, one thread) and gives each table row to one thread, which adds the row's tokens in order of
// t. Threads take equal shares of the sorted tokens, not of the vocabulary: a tokenizer's frequent ids lie
// side by side.
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "kernels/embedding/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::embedding {
namespace {

[[noreturn]] void refuse_id() {
  throw std::runtime_error("an id lies outside the table's rows; the data do not belong to this vocabulary");
}

struct Forward : shapes::EmbeddingForward {
  static void run(const Launch& launch) {
    const std::int64_t rows = launch.dim(Forward::table, 0);
    const std::size_t row_bytes = launch.dim(Forward::table, 1) *
                                  static_cast<std::int64_t>(sdk::dtype_bytes(launch.dtype(Forward::table)));
    const auto* ids = launch.data<const std::int32_t>(Forward::ids);
    const auto* table = launch.data<const char>(Forward::table);
    auto* x = launch.data<char>(Forward::x);
    std::atomic<bool> refused{false};
    for_rows(launch, launch.dim(Forward::ids, 0), launch.dim(Forward::table, 1), [&](std::int64_t t) {
      if (ids[t] < 0 || ids[t] >= rows) return refused.store(true, std::memory_order_relaxed);
      std::memcpy(x + t * row_bytes, table + ids[t] * row_bytes, row_bytes);
    });
    if (refused) refuse_id();
  }
};

struct Backward : shapes::EmbeddingBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return (call.dim(dtable, 0) + 1 + call.dim(ids, 0)) * sizeof(std::int32_t);
  }
  static void run(const Launch& launch) {
    const std::int64_t tokens = launch.dim(Backward::ids, 0), width = launch.dim(Backward::dx, 1),
                       rows = launch.dim(Backward::dtable, 0);
    const auto* ids = launch.data<const std::int32_t>(Backward::ids);
    auto* table = launch.data<float>(Backward::dtable);
    auto* next = launch.workspace<std::int32_t>();  // [rows + 1]: where the next token of an id goes
    auto* order = next + rows + 1;                  // [tokens]: tokens by (id, t)
    std::fill_n(next, rows + 1, 0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      if (ids[t] < 0 || ids[t] >= rows) refuse_id();
      ++next[ids[t] + 1];
    }
    for (std::int64_t row = 0; row < rows; ++row) next[row + 1] += next[row];
    for (std::int64_t t = 0; t < tokens; ++t) order[next[ids[t]]++] = static_cast<std::int32_t>(t);

    dispatch_compute(launch.dtype(Backward::dx), [&]<typename T>() {
      const T* dx = launch.data<const T>(Backward::dx);
      launch.parallel_for(tokens, row_grain(width), [&](std::int64_t begin, std::int64_t end) {
        std::int64_t k = begin;
        // An id's tokens belong to the share in which the first of them lies.
        while (k > 0 && k < end && ids[order[k]] == ids[order[k - 1]]) ++k;
        for (std::int32_t id = -1; k < tokens; ++k) {
          const std::int32_t t = order[k];
          if (ids[t] != id && k >= end) return;
          id = ids[t];
          const T* from = dx + t * width;
          write_row(table + id * width, width, true,
                    [=](std::int64_t j) { return static_cast<float>(from[j]); });
        }
      });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::embedding

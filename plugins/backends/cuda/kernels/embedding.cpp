// Launches of embedding.cu.
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/embedding.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/embedding.cu"

constexpr char kSource[] =
#include "embedding.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::EmbeddingForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const std::int64_t width = call.dim(table, 1);
    sdk::dispatch_rows(call, table, width, {table, x}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(ids, 0), width, N);
      call.launch<&embedding_fwd<T, N>>("embedding_fwd", sdk::instance<T, N>(), rows.grid(), rows.block(),
                                        call.tensor(ids), call.tensor(table), call.tensor(x), rows.rows,
                                        static_cast<int>(call.dim(table, 0)));
    });
  }
};

struct Backward : shapes::EmbeddingBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const std::int64_t width = call.dim(dx, 1);
    sdk::dispatch_rows(call, dx, width, {dx, dtable}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(dtable, 0), width, N);
      call.launch<&embedding_bwd<T, N>>("embedding_bwd", sdk::instance<T, N>(), rows.grid(), rows.block(),
                                        call.tensor(ids), call.tensor(dx), call.tensor(dtable),
                                        static_cast<int>(call.dim(ids, 0)), rows.rows);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda

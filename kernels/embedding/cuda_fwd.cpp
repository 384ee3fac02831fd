#include <mulligan/cuda/row_plan.hpp>

#include "kernels/embedding/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "embedding/cuda_fwd.cu.inc"

struct Forward : shapes::EmbeddingForward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, x, {table, x}, {.values = 1}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(embedding_fwd, T, N), rows, ids, table, x, rows.rows,
                  static_cast<int>(call.dim(table, 0)));
    });
  }
};

const Register registered = sdk::cuda_kernel<Forward>(kSource);

}  // namespace
}  // namespace mulligan::cuda

#include <mulligan/cuda/element_plan.hpp>

#include "kernels/reductions/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "reductions/cuda.cu.inc"

constexpr std::int64_t kThreads = 256, kOneThread = 1;

// The sum of x^power over x, of dtype T, into total.
template <typename T, int power>
void plan_sum(CudaCall& call, std::uint32_t x, std::uint32_t total) {
  sdk::dispatch_elements<T>(call, {x}, [&]<int N>(const sdk::ElementPlan& elements) {
    constexpr std::int64_t kUnit = kThreads * 16, kMostPieces = 1024;
    static_assert(kUnit % (kThreads * N) == 0);
    const std::int64_t units = (elements.count + kUnit - 1) / kUnit;
    const std::int64_t piece = (units + kMostPieces - 1) / kMostPieces * kUnit;
    const std::int64_t pieces = piece == 0 ? 0 : (elements.count + piece - 1) / piece;
    const sdk::CudaArgument partial =
        pieces > 1 ? call.workspace(static_cast<std::size_t>(pieces) * sizeof(double)) : call.null();
    call.launch(MLG_INSTANCE(sum_pieces, T, N, power), {pieces, 1, 1}, {kThreads, 1, 1}, call.tensor(x),
                partial, call.tensor(total), elements.count, piece);
    if (pieces > 1) {
      call.launch(MLG_INSTANCE(add_pieces), {1, 1, 1}, {kThreads, 1, 1}, partial, call.tensor(total),
                  static_cast<int>(pieces));
    }
  });
}

// body.template operator()<T>() for f32 or f64.
template <typename Body>
void dispatch_wide(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_F64) return body.template operator()<double>();
  body.template operator()<float>();
}

struct Sum : shapes::Sum {
  static void plan(CudaCall& call) {
    dispatch_wide(call.dtype(x), [&]<typename T>() { plan_sum<T, 1>(call, x, total); });
  }
};

struct SumSquares : shapes::SumSquares {
  static void plan(CudaCall& call) {
    sdk::dispatch_cuda(call.dtype(x), [&]<typename T>() { plan_sum<T, 2>(call, x, total); });
  }
};

struct ClipScale : shapes::ClipScale {
  static void plan(CudaCall& call) {
    const double limit = call.attribute(max_norm);
    const auto high = static_cast<float>(limit);
    call.constant("max_norm_high", high);
    call.constant("max_norm_low", limit - static_cast<double>(high));
    call.launch(MLG_INSTANCE(clip_scale), {1, 1, 1}, {kOneThread, 1, 1}, total, norm, scale);
  }
};

struct ScaleBy : shapes::ScaleBy {
  static void plan(CudaCall& call) {
    sdk::dispatch_elements<float>(call, {x}, [&]<int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(scale_by, N), elements, x, scale, elements.count);
    });
  }
};

struct LerpInto : shapes::LerpInto {
  static void plan(CudaCall& call) {
    call.constant("keep", call.attribute(decay));
    call.constant("take", 1.0 - call.attribute(decay));
    sdk::dispatch_cuda(call.dtype(x), [&]<typename T>() {
      sdk::dispatch_elements<float, T>(call, {average, x}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(lerp_into, T, N), elements, average, x, elements.count);
      });
    });
  }
};

struct RecordScalar : shapes::RecordScalar {
  static void plan(CudaCall& call) {
    dispatch_wide(call.dtype(x), [&]<typename T>() {
      call.launch(MLG_INSTANCE(record_scalar, T), {1, 1, 1}, {kOneThread, 1, 1}, x, index, ring,
                  call.dim(ring, 0));
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Sum>(kSource),       sdk::cuda_kernel<SumSquares>(kSource),
                               sdk::cuda_kernel<ClipScale>(kSource), sdk::cuda_kernel<ScaleBy>(kSource),
                               sdk::cuda_kernel<LerpInto>(kSource),  sdk::cuda_kernel<RecordScalar>(kSource)};

}  // namespace
}  // namespace mulligan::cuda

// Launches of reductions.cu.
#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/reductions.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/reductions.cu"

constexpr char kSource[] =
#include "reductions.cu.inc"
    ;

using sdk::CudaCall;
using sdk::device_type;

constexpr std::int64_t kThreads = 256, kOneThread = 1;

// The sum of x^power over argument 0, of dtype T, into argument 1.
template <typename T, int power>
void plan_sum(CudaCall& call) {
  sdk::dispatch_elements<T>(call, {0}, [&]<int N>(const sdk::ElementPlan& elements) {
    constexpr std::int64_t kUnit = kThreads * 16, kMostPieces = 1024;
    static_assert(kUnit % (kThreads * N) == 0);
    const std::int64_t units = (elements.count + kUnit - 1) / kUnit;
    const std::int64_t piece = (units + kMostPieces - 1) / kMostPieces * kUnit;
    const std::int64_t pieces = piece == 0 ? 0 : (elements.count + piece - 1) / piece;
    const sdk::CudaArgument partial =
        pieces > 1 ? call.workspace(static_cast<std::size_t>(pieces) * sizeof(double)) : call.null();
    call.launch<&sum_pieces<T, N, power>>(
        "sum_pieces", {device_type<T>, std::to_string(N), std::to_string(power)}, {pieces, 1, 1},
        {kThreads, 1, 1}, call.tensor(0), partial, call.tensor(1), elements.count, piece);
    if (pieces > 1) {
      call.launch<&add_pieces>("add_pieces", {}, {1, 1, 1}, {kThreads, 1, 1}, partial, call.tensor(1),
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
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    dispatch_wide(call.dtype(x), [&]<typename T>() { plan_sum<T, 1>(call); });
  }
};

struct SumSquares : shapes::SumSquares {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::dispatch_cuda(call.dtype(x), [&]<typename T>() { plan_sum<T, 2>(call); });
  }
};

struct ClipScale : shapes::ClipScale {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const double limit = call.attribute(max_norm);
    const auto high = static_cast<float>(limit);
    call.constant("max_norm_high", high);
    call.constant("max_norm_low", limit - static_cast<double>(high));
    call.launch<&clip_scale>("clip_scale", {}, {1, 1, 1}, {kOneThread, 1, 1}, call.tensor(total),
                             call.tensor(norm), call.tensor(scale));
  }
};

struct ScaleBy : shapes::ScaleBy {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::dispatch_elements<float>(call, {x}, [&]<int N>(const sdk::ElementPlan& elements) {
      call.launch<&scale_by<N>>("scale_by", {std::to_string(N)}, elements.grid(), elements.block(),
                                call.tensor(x), call.tensor(scale), elements.count);
    });
  }
};

struct LerpInto : shapes::LerpInto {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("keep", call.attribute(decay));
    call.constant("take", 1.0 - call.attribute(decay));
    sdk::dispatch_cuda(call.dtype(x), [&]<typename T>() {
      sdk::dispatch_elements<float, T>(call, {average, x}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch<&lerp_into<T, N>>("lerp_into", sdk::instance<T, N>(), elements.grid(), elements.block(),
                                      call.tensor(average), call.tensor(x), elements.count);
      });
    });
  }
};

struct RecordScalar : shapes::RecordScalar {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    dispatch_wide(call.dtype(x), [&]<typename T>() {
      call.launch<&record_scalar<T>>("record_scalar", {device_type<T>}, {1, 1, 1}, {kOneThread, 1, 1},
                                     call.tensor(x), call.tensor(index), call.tensor(ring),
                                     call.dim(ring, 0));
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Sum>(),       sdk::cuda_kernel<SumSquares>(),
                               sdk::cuda_kernel<ClipScale>(), sdk::cuda_kernel<ScaleBy>(),
                               sdk::cuda_kernel<LerpInto>(),  sdk::cuda_kernel<RecordScalar>()};

}  // namespace
}  // namespace mulligan::cuda

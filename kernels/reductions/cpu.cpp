// Whole-tensor sums and what the trainer does with them:
//   sum_f64          total += sum(x)            sum_squares_f64  total += sum(x^2)         (f64)
//   clip_scale       norm = sqrt(total), scale = min(1, max_norm / (norm + 1e-6)); max_norm = 0: scale = 1
//   scale_by         x *= scale                 lerp_into        average = decay average + (1 - decay) x
//   record_scalar    ring[index mod n] = x
//
// Determinism: sums are f64, over fixed pieces of kPiece elements in fixed lanes;
// the pieces are added in order.
#include "kernels/reductions/signature.h"

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::reductions {
namespace {

constexpr std::int64_t kPiece = 32768;
constexpr int kDoubleLanes = 16;

std::int64_t piece_count(std::int64_t elements) {
  return (elements + kPiece - 1) / kPiece;
}

template <typename Term>
double sum_piece(std::int64_t begin, std::int64_t end, Term&& term) {
  double lanes[kDoubleLanes] = {};
  std::int64_t i = begin;
  for (; i + kDoubleLanes <= end; i += kDoubleLanes) {
    for (int lane = 0; lane < kDoubleLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (int lane = 0; i + lane < end; ++lane) lanes[lane] += term(i + lane);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// total += sum of term(i) over the elements of x.
template <typename Term>
void add_total(const Launch& launch, std::uint32_t x, std::uint32_t total, Term&& term) {
  const std::int64_t elements = launch.size(x);
  auto* sums = launch.workspace<double>();
  launch.for_each(piece_count(elements), 1, [&](std::int64_t piece) {
    sums[piece] = sum_piece(piece * kPiece, std::min(elements, (piece + 1) * kPiece), term);
  });
  double sum = 0;
  for (std::int64_t piece = 0; piece < piece_count(elements); ++piece) sum += sums[piece];
  *launch.data<double>(total) += sum;
}

struct Sum : shapes::Sum {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return piece_count(call.size(x)) * sizeof(double);
  }
  static void run(const Launch& launch) {
    const auto add = [&]<typename T>(const T* x) {
      add_total(launch, Sum::x, Sum::total, [x](std::int64_t i) { return static_cast<double>(x[i]); });
    };
    if (launch.dtype(Sum::x) == MLG_F64) {
      add(launch.data<const double>(Sum::x));
    } else {
      add(launch.data<const float>(Sum::x));
    }
  }
};

struct SumSquares : shapes::SumSquares {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return piece_count(call.size(x)) * sizeof(double);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const T* x = launch.data<const T>(SumSquares::x);
    add_total(launch, SumSquares::x, SumSquares::total, [x](std::int64_t i) {
      const double value = static_cast<float>(x[i]);
      return value * value;
    });
  }
};

struct ClipScale : shapes::ClipScale {
  static void run(const Launch& launch) {
    const double max_norm = launch.attribute(ClipScale::max_norm),
                 norm = std::sqrt(*launch.data<const double>(ClipScale::total));
    *launch.data<float>(ClipScale::norm) = static_cast<float>(norm);
    *launch.data<float>(ClipScale::scale) =
        max_norm == 0 ? 1.0f : static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6)));
  }
};

struct ScaleBy : shapes::ScaleBy {
  static void run(const Launch& launch) {
    const float scale = *launch.data<const float>(ScaleBy::scale);
    if (scale == 1.0f) return;  // a clip that does not bite costs no memory traffic
    const float* x = launch.data<const float>(ScaleBy::x);
    write_elements<float>(launch, ScaleBy::x, false, [=](std::int64_t i) { return x[i] * scale; });
  }
};

struct LerpInto : shapes::LerpInto {
  static void run(const Launch& launch) {
    const auto keep = launch.number(LerpInto::decay),
               take = static_cast<float>(1.0 - launch.attribute(LerpInto::decay));
    dispatch_compute(launch.dtype(LerpInto::x), [&]<typename T>() {
      const float* average = launch.data<const float>(LerpInto::average);
      const T* x = launch.data<const T>(LerpInto::x);
      write_elements<float>(launch, LerpInto::average, false,
                            [=](std::int64_t i) { return keep * average[i] + take * float(x[i]); });
    });
  }
};

struct RecordScalar : shapes::RecordScalar {
  static void run(const Launch& launch) {
    const std::int64_t length = launch.dim(RecordScalar::ring, 0),
                       index = *launch.data<const std::int64_t>(RecordScalar::index) % length;
    const double value = launch.dtype(RecordScalar::x) == MLG_F64
                             ? *launch.data<const double>(RecordScalar::x)
                             : *launch.data<const float>(RecordScalar::x);
    launch.data<double>(RecordScalar::ring)[index < 0 ? index + length : index] = value;
  }
};

const Register registered[] = {sdk::cpu_kernel<Sum>(),       sdk::cpu_kernel<SumSquares>(),
                               sdk::cpu_kernel<ClipScale>(), sdk::cpu_kernel<ScaleBy>(),
                               sdk::cpu_kernel<LerpInto>(),  sdk::cpu_kernel<RecordScalar>()};

}  // namespace
}  // namespace mulligan::cpu::reductions

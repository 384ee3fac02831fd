// Whole-tensor sums and what the trainer does with them:
//   sum_f64          total += sum(x)            sum_squares_f64  total += sum(x^2)         (f64)
//   clip_scale       norm = sqrt(total), scale = min(1, max_norm / (norm + 1e-6)); max_norm = 0: scale = 1
//   scale_by         x *= scale                 lerp_into        average = decay average + (1 - decay) x
//   record_scalar    ring[index mod n] = x
//
// Determinism: sums are f64, over fixed pieces of kPiece elements in fixed lanes; the pieces are added in
// order.
#include "plugins/backends/common/shapes/reductions.h"

#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
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

// total += sum of term(i) over the elements of argument 0.
template <typename Term>
void add_total(const Launch& launch, Term&& term) {
  const std::int64_t elements = launch.size(0);
  auto* sums = launch.workspace<double>();
  launch.parallel_for(piece_count(elements), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t piece = first; piece < last; ++piece) {
      sums[piece] = sum_piece(piece * kPiece, std::min(elements, (piece + 1) * kPiece), term);
    }
  });
  double sum = 0;
  for (std::int64_t piece = 0; piece < piece_count(elements); ++piece) sum += sums[piece];
  *launch.data<double>(1) += sum;
}

void check_sum(Checker& check) {
  shapes::Sum::check(check);
  check.workspace(piece_count(check.size(0)) * sizeof(double));
}

void run_sum(const Launch& launch) {
  const auto add = [&]<typename T>(const T* x) {
    add_total(launch, [x](std::int64_t i) { return static_cast<double>(x[i]); });
  };
  if (launch.dtype(0) == MLG_F64) {
    add(launch.data<const double>(0));
  } else {
    add(launch.data<const float>(0));
  }
}

void check_sum_squares(Checker& check) {
  shapes::SumSquares::check(check);
  check.workspace(piece_count(check.size(0)) * sizeof(double));
}

void run_sum_squares(const Launch& launch) {
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    const T* x = launch.data<const T>(0);
    add_total(launch, [x](std::int64_t i) {
      const double value = static_cast<float>(x[i]);
      return value * value;
    });
  });
}

void run_clip_scale(const Launch& launch) {
  const double max_norm = launch.attribute(0), norm = std::sqrt(*launch.data<const double>(0));
  *launch.data<float>(1) = static_cast<float>(norm);
  *launch.data<float>(2) = max_norm == 0 ? 1.0f : static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6)));
}

void run_scale_by(const Launch& launch) {
  const float scale = *launch.data<const float>(1);
  if (scale == 1.0f) return;  // a clip that does not bite costs no memory traffic
  for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
    float* x = launch.data<float>(0) + begin;
    write_row(x, end - begin, false, [=](std::int64_t i) { return x[i] * scale; });
  });
}

void run_lerp_into(const Launch& launch) {
  const auto keep = static_cast<float>(launch.attribute(0)),
             take = static_cast<float>(1.0 - launch.attribute(0));
  dispatch_compute(launch.dtype(1), [&]<typename T>() {
    for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
      float* average = launch.data<float>(0) + begin;
      const T* x = launch.data<const T>(1) + begin;
      write_row(average, end - begin, false,
                [=](std::int64_t i) { return keep * average[i] + take * float(x[i]); });
    });
  });
}

void run_record_scalar(const Launch& launch) {
  const std::int64_t length = launch.dim(2, 0), index = *launch.data<const std::int64_t>(1) % length;
  const double value =
      launch.dtype(0) == MLG_F64 ? *launch.data<const double>(0) : *launch.data<const float>(0);
  launch.data<double>(2)[index < 0 ? index + length : index] = value;
}

MULLIGAN_CPU_KERNEL(sum_f64, shapes::Sum::signature, check_sum, run_sum)
MULLIGAN_CPU_KERNEL(sum_squares_f64, shapes::SumSquares::signature, check_sum_squares, run_sum_squares)
MULLIGAN_CPU_KERNEL(clip_scale, shapes::ClipScale::signature, shapes::ClipScale::check, run_clip_scale)
MULLIGAN_CPU_KERNEL(scale_by, shapes::ScaleBy::signature, shapes::ScaleBy::check, run_scale_by)
MULLIGAN_CPU_KERNEL(lerp_into, shapes::LerpInto::signature, shapes::LerpInto::check, run_lerp_into)
MULLIGAN_CPU_KERNEL(record_scalar, shapes::RecordScalar::signature, shapes::RecordScalar::check,
                    run_record_scalar)

}  // namespace
}  // namespace mulligan::cpu

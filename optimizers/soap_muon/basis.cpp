#include "optimizers/soap_muon/basis.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/common/newton_schulz.h"
#include "optimizers/soap_muon/orthogonal.h"

namespace mulligan::optimizers {
namespace {

void check_square(const sdk::CallChecks& call, std::uint32_t argument) {
  call.dtype(argument, {MLG_F32});
  call.rank(argument, 2, 2);
  call.require(call.dim(argument, 0) == call.dim(argument, 1), argument, "must be square");
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Turns two rows until they are orthogonal; whether they were not.
bool turn(double* a, double* b, std::int64_t n) {
  const double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
  if (!(std::abs(ab) > SoapEigenvectors::tolerance * std::sqrt(aa) * std::sqrt(bb))) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double tangent = (zeta < 0 ? -1.0 : 1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (std::int64_t i = 0; i < n; ++i) {
    const double before = a[i];
    a[i] = cosine * before - sine * b[i];
    b[i] = sine * before + cosine * b[i];
  }
  return true;
}

void orthogonalise_rows(const sdk::Launch& call, double* rows, std::int64_t n) {
  const std::int64_t even = n + n % 2;
  for (int sweep = 0; sweep < SoapEigenvectors::sweeps; ++sweep) {
    std::atomic<bool> turned = false;
    for (std::int64_t round = 0; round < even - 1; ++round) {
      call.for_each(even / 2, std::max<std::int64_t>(1, 8192 / n), [&](std::int64_t index) {
        const auto [a, b] = JacobiPair::of(even, round, index);
        if (std::max(a, b) < n && turn(rows + a * n, rows + b * n, n)) turned = true;
      });
    }
    if (!turned) return;
  }
}

// How many of the n values come before value i when they are sorted from the largest.
std::int64_t rank_of(const double* values, std::int64_t n, std::int64_t i) {
  std::int64_t rank = 0;
  for (std::int64_t j = 0; j < n; ++j) rank += values[j] > values[i] || (values[j] == values[i] && j < i);
  return rank;
}

// What a NaN is sorted as, so that an order stays a permutation.
double sortable(double value) {
  return value == value ? value : -std::numeric_limits<double>::infinity();
}

}  // namespace

void SoapSort::check(const sdk::CallChecks& call) {
  check_square(call, basis);
  call.like(projected, basis);
  call.like(sorted, basis);
  call.i32(order, {call.dim(basis, 0)});
}

std::size_t SoapSort::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(call.dim(basis, 0)) * sizeof(double);
}

void SoapSort::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, basis);
  const std::int64_t n = shape.rows;
  double* values = call.workspace<double>();
  call.for_each(n, shape.grain(), [&](std::int64_t row) {
    const float *a = call.data<const float>(basis) + row * n,
                *b = call.data<const float>(projected) + row * n;
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    values[row] = sortable(sum);
  });
  call.for_each(n, shape.grain(), [&](std::int64_t row) {
    const std::int64_t rank = rank_of(values, n, row);
    call.data<std::int32_t>(order)[rank] = static_cast<std::int32_t>(row);
    std::copy_n(call.data<const float>(projected) + row * n, n, call.data<float>(sorted) + rank * n);
  });
}

void SoapPermute::check(const sdk::CallChecks& call) {
  call.dtype(x, {MLG_F32});
  call.rank(x, 2, 2);
  call.like(permuted, x);
  call.i32(row_order, {call.dim(x, 0)});
  call.i32(column_order, {call.dim(x, 1)});
}

void SoapPermute::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, x);
  const auto *from_row = call.data<const std::int32_t>(row_order),
             *from_column = call.data<const std::int32_t>(column_order);
  call.for_each(shape.rows, shape.grain(), [&](std::int64_t row) {
    const float* from = call.data<const float>(x) + from_row[row] * shape.columns;
    float* to = call.data<float>(permuted) + row * shape.columns;
    for (std::int64_t j = 0; j < shape.columns; ++j) to[j] = from[from_column[j]];
  });
}

void SoapEigenvectors::check(const sdk::CallChecks& call) {
  check_square(call, gram);
  call.like(rows, gram);
  call.scalars(scalars, soap_scalar_count);
}

std::size_t SoapEigenvectors::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(call.size(gram) + call.dim(gram, 0)) * sizeof(double);
}

void SoapEigenvectors::run(const sdk::Launch& call) {
  if (call.data<const float>(scalars)[soap_first] == 0) return;
  const std::int64_t n = call.dim(gram, 0);
  double *turned = call.workspace<double>(), *values = turned + n * n;
  std::copy_n(call.data<const float>(gram), n * n, turned);
  orthogonalise_rows(call, turned, n);
  for (std::int64_t row = 0; row < n; ++row) {
    values[row] = sortable(std::sqrt(dot(turned + row * n, turned + row * n, n)));
  }
  for (std::int64_t row = 0; row < n; ++row) {
    float* to = call.data<float>(rows) + rank_of(values, n, row) * n;
    const double factor = values[row] > 0 ? 1 / values[row] : 0.0;
    for (std::int64_t j = 0; j < n; ++j) to[j] = static_cast<float>(factor * turned[row * n + j]);
  }
}

void SoapFirstRows::check(const sdk::CallChecks& call) {
  check_square(call, rows);
  call.dtype(image, {MLG_F32});
  call.rank(image, 2, 2);
  call.require(call.dim(image, 1) == call.dim(rows, 1) && call.dim(image, 0) <= call.dim(rows, 0), image,
               "must be the first rows of rows");
  call.scalars(scalars, soap_scalar_count);
}

void SoapFirstRows::run(const sdk::Launch& call) {
  if (call.data<const float>(scalars)[soap_first] == 0) return;
  float* to = call.data<float>(rows);
  std::copy_n(call.data<const float>(image), call.size(image), to);
  std::fill(to + call.size(image), to + call.size(rows), 0.0f);
}

namespace {

struct Sorted {
  sdk::Value rows, order;
};
// gram times the basis, sorted. gram is symmetric, so the rows of basis gram are gram times the vectors of the basis.
Sorted record_sorted(sdk::Recorder& recorder, sdk::Value gram, sdk::Value basis) {
  const mlg_tensor shape = recorder.describe(gram);
  const sdk::Value projected = recorder.scratch(shape);
  record_matmul(recorder, basis, false, gram, false, projected, 1.0, 0.0);
  const Sorted sorted{recorder.scratch(shape), recorder.scratch(sdk::shape(MLG_I32, {shape.shape[0]}))};
  recorder.launch(SoapSort::name, {basis, projected, sorted.rows, sorted.order});
  return sorted;
}

}  // namespace

void record_bases(sdk::Recorder& recorder, const SoapBases& matrix, double beta2, sdk::Value scalars) {
  const sdk::Value g = matrix.gradient;
  record_symmetric(recorder, g, false, g, true, matrix.row_gram, 1 - beta2, beta2);
  record_symmetric(recorder, g, true, g, false, matrix.column_gram, 1 - beta2, beta2);
  const Sorted of_rows = record_sorted(recorder, matrix.row_gram, matrix.row_basis);
  const Sorted of_columns = record_sorted(recorder, matrix.column_gram, matrix.column_basis);

  const mlg_tensor shape = recorder.describe(g);
  const sdk::Value permuted = recorder.scratch(shape);
  recorder.launch(SoapPermute::name, {matrix.second_moment, of_rows.order, of_columns.order, permuted});
  recorder.launch("cast", {permuted, matrix.second_moment});

  const bool tall = shape.shape[0] > shape.shape[1];
  const Sorted &smaller = tall ? of_columns : of_rows, &larger = tall ? of_rows : of_columns;
  recorder.launch(SoapEigenvectors::name,
                  {tall ? matrix.column_gram : matrix.row_gram, scalars, smaller.rows});
  const sdk::Value image = recorder.scratch(sdk::shape(
      MLG_F32, {std::min(shape.shape[0], shape.shape[1]), std::max(shape.shape[0], shape.shape[1])}));
  record_matmul(recorder, smaller.rows, false, g, tall, image, 1.0, 0.0);
  recorder.launch(SoapFirstRows::name, {image, scalars, larger.rows});

  record_orthogonal_rows(recorder, of_rows.rows, matrix.row_basis);
  record_orthogonal_rows(recorder, of_columns.rows, matrix.column_basis);
}

}  // namespace mulligan::optimizers

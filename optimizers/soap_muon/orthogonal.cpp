#include "optimizers/soap_muon/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "optimizers/common/newton_schulz.h"

namespace mulligan::optimizers {
namespace {

// Over columns [begin, n) of two rows.
double row_dot(const float* a, const float* b, std::int64_t begin, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = begin; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// The row becomes the unit vector of the reflection that leaves of it column j alone.
void make_reflector(float* row, std::int64_t j, std::int64_t n) {
  const double norm = std::sqrt(row_dot(row, row, j, n)), x = row[j];
  const double head = x + (x < 0 ? -norm : norm);
  const double length = std::sqrt(norm * norm - x * x + head * head);
  const double factor = length > 0 ? 1 / length : 0.0;
  std::fill(row, row + j, 0.0f);
  row[j] = static_cast<float>(factor * head);
  for (std::int64_t i = j + 1; i < n; ++i) row[i] = static_cast<float>(factor * row[i]);
}

}  // namespace

void SoapReflect::check(const sdk::CallChecks& call) {
  call.dtype(rows, {MLG_F32});
  call.rank(rows, 2, 2);
  call.like(reflectors, rows);
  call.f32(triangle, {call.dim(rows, 0), call.dim(rows, 0)});
  call.require(call.dim(rows, 0) <= most_rows, rows, "must have at most 32 rows");
  call.attribute_range(first, 0, static_cast<double>(call.dim(rows, 1) - call.dim(rows, 0)));
}

void SoapReflect::run(const sdk::Launch& call) {
  const std::int64_t count = call.dim(rows, 0), n = call.dim(rows, 1);
  const auto from = static_cast<std::int64_t>(call.attribute(first));
  float *v = call.data<float>(reflectors), *t = call.data<float>(triangle);
  std::copy_n(call.data<const float>(rows), count * n, v);
  std::fill_n(t, count * count, 0.0f);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t j = from + k;
    float* reflector = v + k * n;
    make_reflector(reflector, j, n);
    double products[most_rows] = {};  // of the earlier ones with this
    call.parallel_for(count, std::max<std::int64_t>(1, 16384 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (i == k) continue;
        const double product = row_dot(v + i * n, reflector, j, n);
        products[i] = product;
        if (i < k) continue;
        const auto twice = static_cast<float>(2 * product);
        for (std::int64_t c = j; c < n; ++c) v[i * n + c] -= twice * reflector[c];
      }
    });
    t[k * count + k] = 2.0f;
    for (std::int64_t i = 0; i < k; ++i) {
      double sum = 0;
      for (std::int64_t m = i; m < k; ++m) sum += static_cast<double>(t[i * count + m]) * products[m];
      t[i * count + k] = static_cast<float>(-2 * sum);
    }
  }
}

void SoapIdentity::check(const sdk::CallChecks& call) {
  call.dtype(x, {MLG_F32});
  call.rank(x, 2, 2);
  call.require(call.dim(x, 0) == call.dim(x, 1), x, "must be square");
}

void SoapIdentity::run(const sdk::Launch& call) {
  const std::int64_t n = call.dim(x, 0);
  std::fill_n(call.data<float>(x), n * n, 0.0f);
  for (std::int64_t i = 0; i < n; ++i) call.data<float>(x)[i * n + i] = 1.0f;
}

namespace {

struct Panel {
  std::int64_t first, rows;
  sdk::Value reflectors, triangle;
};

// Rows of x [n,n] from row `begin` on: x <- x (I - V T V^T), T transposed where `transpose`.
void record_reflections(sdk::Recorder& recorder, sdk::Value x, std::int64_t begin, const Panel& panel,
                        bool transpose) {
  const std::int64_t n = recorder.describe(x).shape[0], rows = n - begin;
  if (rows == 0) return;
  const mlg_tensor narrow = sdk::shape(MLG_F32, {rows, panel.rows});
  const sdk::Value below = recorder.view(x, begin * n, sdk::shape(MLG_F32, {rows, n}));
  const sdk::Value along = recorder.scratch(narrow), mixed = recorder.scratch(narrow);
  record_matmul(recorder, below, false, panel.reflectors, true, along, 1.0, 0.0);
  record_matmul(recorder, along, false, panel.triangle, transpose, mixed, 1.0, 0.0);
  record_matmul(recorder, mixed, false, panel.reflectors, false, below, -1.0, 1.0);
}

}  // namespace

void record_orthogonal_rows(sdk::Recorder& recorder, sdk::Value x, sdk::Value result) {
  const std::int64_t n = recorder.describe(x).shape[0];
  std::vector<Panel> panels;
  for (std::int64_t first = 0; first < n; first += SoapReflect::most_rows) {
    const std::int64_t rows = std::min(SoapReflect::most_rows, n - first);
    const Panel& panel =
        panels.emplace_back(Panel{first, rows, recorder.scratch(sdk::shape(MLG_F32, {rows, n})),
                                  recorder.scratch(sdk::shape(MLG_F32, {rows, rows}))});
    recorder.launch(
        SoapReflect::name,
        {recorder.view(x, first * n, sdk::shape(MLG_F32, {rows, n})), panel.reflectors, panel.triangle},
        {{"first", first}});
    record_reflections(recorder, x, first + rows, panel, false);
  }
  // Q^T = (H_1 ... H_n)^T, a panel after the other from the last: rows before a panel's own are not touched by it.
  recorder.launch(SoapIdentity::name, {result});
  for (std::size_t i = panels.size(); i-- > 0;) {
    record_reflections(recorder, result, panels[i].first, panels[i], true);
  }
}

}  // namespace mulligan::optimizers

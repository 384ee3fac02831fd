#include "optimizers/soap_muon/whitening.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "optimizers/common/matrix_shape.h"

namespace mulligan::optimizers {
namespace {

constexpr std::int64_t kGrain = 16384;

// f32 arguments of the shape of the first.
void check_alike(const sdk::CallChecks& call, std::initializer_list<std::uint32_t> arguments) {
  for (const std::uint32_t argument : arguments) {
    call.dtype(argument, {MLG_F32});
    call.same_shape(argument, *arguments.begin());
  }
}

using TrustSums = std::array<double, SoapTrust::sums>;

double trust(const TrustSums& sums, double agreement) {
  const auto [rr, ww, gg, wr, wg, rg] = sums;
  const auto cosine = [](double product, double a, double b) {
    return product / std::max(std::sqrt(a) * std::sqrt(b), 1e-8);
  };
  const auto clip = [](double value) { return std::clamp(value, 0.0, 1.0); };
  const double agrees = clip((cosine(wr, ww, rr) - agreement) / (1 - agreement));
  return clip(agrees * clip(cosine(wg, ww, gg) / std::max(cosine(rg, rr, gg), 1e-8)));
}

}  // namespace

void SoapWhiten::check(const sdk::CallChecks& call) {
  check_alike(call, {p, v, white});
  call.attribute_range(beta2, 0, 1);
}

void SoapWhiten::run(const sdk::Launch& call) {
  const auto keep = call.number(beta2);
  const auto take = static_cast<float>(1.0 - call.attribute(beta2));
  call.parallel_for(call.size(p), kGrain, [&](std::int64_t begin, std::int64_t end) {
    const float* from = call.data<const float>(p);
    float *moment = call.data<float>(v), *to = call.data<float>(white);
    for (std::int64_t i = begin; i < end; ++i) {
      moment[i] = keep * moment[i] + take * (from[i] * from[i]);
      to[i] = from[i] / std::sqrt(std::max(moment[i], 1e-16f));
    }
  });
}

void SoapKeepNorm::check(const sdk::CallChecks& call) {
  check_alike(call, {raw, x, result});
  check_alike(call, {raw_norm, x_norm});
  call.shape(raw_norm, {1});
  call.scalars(scalars, soap_scalar_count);
}

void SoapKeepNorm::run(const sdk::Launch& call) {
  const bool first = call.data<const float>(scalars)[soap_first] != 0;
  const float factor =
      std::max(*call.data<const float>(raw_norm), 1e-8f) / std::max(*call.data<const float>(x_norm), 1e-8f);
  call.for_each(call.size(raw), kGrain, [&](std::int64_t i) {
    call.data<float>(result)[i] =
        first ? call.data<const float>(raw)[i] : call.data<const float>(x)[i] * factor;
  });
}

void SoapTrust::check(const sdk::CallChecks& call) {
  check_alike(call, {raw, white, gradient, blended});
  call.rank(raw, 2, 2);
  call.f32(gate, {2});
  call.scalars(scalars, soap_scalar_count);
  call.attribute_range(agreement, 0, 0.999999);
}

std::size_t SoapTrust::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(call.dim(raw, 0)) * sizeof(TrustSums);
}

void SoapTrust::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, raw);
  TrustSums* rows = call.workspace<TrustSums>();
  const float *r = call.data<const float>(raw), *w = call.data<const float>(white),
              *g = call.data<const float>(gradient);
  call.for_each(shape.rows, shape.grain(), [&](std::int64_t row) {
    TrustSums own{};
    for (std::int64_t i = row * shape.columns; i < (row + 1) * shape.columns; ++i) {
      const double a = r[i], b = w[i], c = g[i];
      const double terms[sums] = {a * a, b * b, c * c, b * a, b * c, a * c};
      for (int k = 0; k < sums; ++k) own[k] += terms[k];
    }
    rows[row] = own;
  });
  TrustSums all{};
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (int k = 0; k < sums; ++k) all[k] += rows[row][k];
  }
  const float* values = call.data<const float>(scalars);
  const auto free = static_cast<float>(trust(all, call.attribute(agreement)));
  const float t = std::min(std::max(free, values[soap_trust_floor]), values[soap_trust_cap]);
  call.data<float>(gate)[0] = free;
  call.data<float>(gate)[1] = t;
  call.for_each(call.size(raw), kGrain,
                [&](std::int64_t i) { call.data<float>(blended)[i] = r[i] + t * (w[i] - r[i]); });
}

}  // namespace mulligan::optimizers

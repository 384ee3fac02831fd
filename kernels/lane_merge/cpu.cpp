// lane_merge on lane0, lane1, a, m [T,d]; A = attn_scale a, M = mlp_scale m:
//   out0 = rho0 lane0 + post[0,0] A + post[1,0] M,   out1 = rho1 lane1 + post[0,1] A + post[1,1] M
// Backward, with g0 = dout0, g1 = dout1 (absent: zero) and
//   GA = post[0,0] g0 + post[0,1] g1,  GM = post[1,0] g0 + post[1,1] g1:
//   dlane0 (+)= rho0 g0,  dlane1 (+)= rho1 g1,  da (+)= attn_scale GA,  dm (+)= mlp_scale GM,
//   dattn_scale += sum GA a,  dmlp_scale += sum GM m  (over tokens),
//   drho_i += sum g_i lane_i,  dpost[0,i] += sum g_i A,  dpost[1,i] += sum g_i M  (over tokens and columns)
//
// Determinism: rows are independent; all sums go through partial sums over fixed pieces of tokens.
#include "kernels/lane_merge/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::lane_merge {
namespace {

using Backward = shapes::LaneMergeBackward;

struct Forward : shapes::LaneMergeForward {
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Forward::lane0, 1);
    const float* attn_scale = launch.data<const float>(Forward::attn_scale);
    const float* mlp_scale = launch.data<const float>(Forward::mlp_scale);
    const float* rho = launch.data<const float>(Forward::rho);
    const float* post = launch.data<const float>(Forward::post);
    for_rows(launch, launch.dim(Forward::lane0, 0), width, [&](std::int64_t row) {
      const T* a = launch.data<const T>(Forward::a) + row * width;
      const T* m = launch.data<const T>(Forward::m) + row * width;
      for (std::uint32_t i = 0; i < 2; ++i) {
        const T* lane = launch.data<const T>(Forward::lane0 + i) + row * width;
        const float of_lane = rho[i], of_a = post[i], of_m = post[2 + i];
        write_row(launch.data<T>(Forward::out0 + i) + row * width, width, false, [=](std::int64_t j) {
          return of_lane * float(lane[j]) + of_a * (attn_scale[j] * float(a[j])) +
                 of_m * (mlp_scale[j] * float(m[j]));
        });
      }
    });
  }
};

// Places in a row of sums: dattn_scale [d], dmlp_scale [d], drho [2], dpost [2,2].
std::int64_t sums_width(std::int64_t width) {
  return 2 * width + 6;
}

// One token's gradients of activations; adds its part of the parameters' gradients to `partial` unless that
// is null.
template <typename T>
void backward_row(const Launch& launch, float* partial, std::int64_t row) {
  const std::int64_t width = launch.dim(Backward::lane0, 1);
  const float* attn_scale = launch.data<const float>(Backward::attn_scale);
  const float* mlp_scale = launch.data<const float>(Backward::mlp_scale);
  const float* rho = launch.data<const float>(Backward::rho);
  const float* post = launch.data<const float>(Backward::post);
  const float rho0 = rho[0], rho1 = rho[1];
  const float post00 = post[0], post01 = post[1], post10 = post[2], post11 = post[3];
  const auto input = [&](std::uint32_t argument) { return row_of<const T>(launch, argument, row, width); };
  const auto output = [&](std::uint32_t argument) { return row_of<T>(launch, argument, row, width); };
  const auto accumulate = [&](std::uint32_t gradient) { return launch.flag(gradient - Backward::dlane0); };
  const T *lane0 = input(Backward::lane0), *lane1 = input(Backward::lane1), *a = input(Backward::a),
          *m = input(Backward::m);
  const T *dout0 = input(Backward::dout0), *dout1 = input(Backward::dout1);
  T *dlane0 = output(Backward::dlane0), *dlane1 = output(Backward::dlane1), *da = output(Backward::da),
    *dm = output(Backward::dm);
  const bool add_lane0 = accumulate(Backward::dlane0), add_lane1 = accumulate(Backward::dlane1);
  const bool add_a = accumulate(Backward::da), add_m = accumulate(Backward::dm);
  // Sums over the columns, in lanes: g0 lane0, g1 lane1, g0 A, g1 A, g0 M, g1 M (drho, dpost).
  alignas(64) float lane_storage[6][kBlock] = {};
  static_assert(kBlock == kLanes);
  auto* lanes = lane_storage;
  for_blocks(width, [=](std::int64_t column, auto count) {
    alignas(64) float storage[4][kBlock];
    float *g0 = storage[0], *g1 = storage[1], *ga = storage[2], *gm = storage[3];
    fill_row(g0, count, [=](std::int64_t i) { return dout0 ? float(dout0[column + i]) : 0.0f; });
    fill_row(g1, count, [=](std::int64_t i) { return dout1 ? float(dout1[column + i]) : 0.0f; });
    fill_row(ga, count, [=](std::int64_t i) { return post00 * g0[i] + post01 * g1[i]; });
    fill_row(gm, count, [=](std::int64_t i) { return post10 * g0[i] + post11 * g1[i]; });
    const float *of_a = attn_scale + column, *of_m = mlp_scale + column;
    if (dlane0) write_row(dlane0 + column, count, add_lane0, [=](std::int64_t i) { return rho0 * g0[i]; });
    if (dlane1) write_row(dlane1 + column, count, add_lane1, [=](std::int64_t i) { return rho1 * g1[i]; });
    if (da) write_row(da + column, count, add_a, [=](std::int64_t i) { return of_a[i] * ga[i]; });
    if (dm) write_row(dm + column, count, add_m, [=](std::int64_t i) { return of_m[i] * gm[i]; });
    if (!partial) return;
    write_row(partial + column, count, true, [=](std::int64_t i) { return ga[i] * float(a[column + i]); });
    write_row(partial + width + column, count, true,
              [=](std::int64_t i) { return gm[i] * float(m[column + i]); });
    write_row(lanes[0], count, true, [=](std::int64_t i) { return g0[i] * float(lane0[column + i]); });
    write_row(lanes[1], count, true, [=](std::int64_t i) { return g1[i] * float(lane1[column + i]); });
    write_row(lanes[2], count, true,
              [=](std::int64_t i) { return g0[i] * (of_a[i] * float(a[column + i])); });
    write_row(lanes[3], count, true,
              [=](std::int64_t i) { return g1[i] * (of_a[i] * float(a[column + i])); });
    write_row(lanes[4], count, true,
              [=](std::int64_t i) { return g0[i] * (of_m[i] * float(m[column + i])); });
    write_row(lanes[5], count, true,
              [=](std::int64_t i) { return g1[i] * (of_m[i] * float(m[column + i])); });
  });
  if (!partial) return;
  for (int i = 0; i < 6; ++i) partial[2 * width + i] += fold_lanes(lanes[i]);
}

struct RunBackward : Backward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const std::int64_t sums = sums_width(call.dim(lane0, 1));
    return aligned_floats(sums) * sizeof(float) + row_sums_bytes(call.dim(lane0, 0), sums);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Backward::lane0, 1);
    const std::int64_t sums = sums_width(width);
    float* total = launch.workspace<float>();
    std::fill_n(total, sums, 0.0f);
    const bool wanted = launch.has(Backward::dattn_scale) || launch.has(Backward::dmlp_scale) ||
                        launch.has(Backward::drho) || launch.has(Backward::dpost);
    add_row_sums(launch, launch.dim(Backward::lane0, 0), sums, total + aligned_floats(sums),
                 wanted ? total : nullptr,
                 [&](float* partial, std::int64_t row) { backward_row<T>(launch, partial, row); });
    const auto add = [](float* to, const float* from, std::int64_t count) {
      for (std::int64_t j = 0; to && j < count; ++j) to[j] += from[j];
    };
    add(launch.data<float>(Backward::dattn_scale), total, width);
    add(launch.data<float>(Backward::dmlp_scale), total + width, width);
    add(launch.data<float>(Backward::drho), total + 2 * width, 2);
    add(launch.data<float>(Backward::dpost), total + 2 * width + 2, 4);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<RunBackward>()};

}  // namespace
}  // namespace mulligan::cpu::lane_merge

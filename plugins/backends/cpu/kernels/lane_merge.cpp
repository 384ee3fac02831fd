// lane_merge on lane0, lane1, a, m [T,d]; A = attn_scale a, M = mlp_scale m:
//   out0 = rho0 lane0 + post[0,0] A + post[1,0] M,   out1 = rho1 lane1 + post[0,1] A + post[1,1] M
// Backward, with g0 = dout0, g1 = dout1 (absent: zero) and
//   GA = post[0,0] g0 + post[0,1] g1,  GM = post[1,0] g0 + post[1,1] g1:
//   dlane0 = rho0 g0,  dlane1 = rho1 g1,  da = attn_scale GA,  dm = mlp_scale GM,
//   dattn_scale += sum GA a,  dmlp_scale += sum GM m  (over tokens),
//   drho_i += sum g_i lane_i,  dpost[0,i] += sum g_i A,  dpost[1,i] += sum g_i M  (over tokens and columns)
//
// Determinism: rows are independent; all sums go through partial sums over fixed pieces of tokens.
#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

constexpr std::int64_t kBlock = 512;  // columns that are converted to float and worked on at once

enum Forward { kLane0, kLane1, kA, kM, kAttnScale, kMlpScale, kRho, kPost, kOut0, kOut1 };

void check_inputs(Checker& check) {
  check.compute_dtype(kLane0);
  check.rank(kLane0, 2, 2);
  for (const std::uint32_t argument : {kLane1, kA, kM}) check.like(argument, kLane0);
  for (const std::uint32_t argument : {kAttnScale, kMlpScale, kRho, kPost}) check.dtype(argument, {MLG_F32});
  check.shape(kAttnScale, {check.dim(kLane0, 1)});
  check.shape(kMlpScale, {check.dim(kLane0, 1)});
  check.shape(kRho, {2});
  check.shape(kPost, {2, 2});
}

void check_forward(Checker& check) {
  check_inputs(check);
  check.like(kOut0, kLane0);
  check.like(kOut1, kLane0);
}

void run_forward(const Launch& launch) {
  const std::int64_t width = launch.dim(kLane0, 1);
  const float* attn_scale = launch.data<const float>(kAttnScale);
  const float* mlp_scale = launch.data<const float>(kMlpScale);
  const float* rho = launch.data<const float>(kRho);
  const float* post = launch.data<const float>(kPost);
  dispatch_compute(launch.dtype(kLane0), [&]<typename T>() {
    launch.parallel_for(launch.dim(kLane0, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* a = launch.data<const T>(kA) + row * width;
        const T* m = launch.data<const T>(kM) + row * width;
        for (std::uint32_t i = 0; i < 2; ++i) {
          const T* lane = launch.data<const T>(kLane0 + i) + row * width;
          const float of_lane = rho[i], of_a = post[i], of_m = post[2 + i];
          write_row(launch.data<T>(kOut0 + i) + row * width, width, false, [=](std::int64_t j) {
            return of_lane * float(lane[j]) + of_a * (attn_scale[j] * float(a[j])) +
                   of_m * (mlp_scale[j] * float(m[j]));
          });
        }
      }
    });
  });
}

enum Backward { kDout0 = 8, kDout1, kDlane0, kDlane1, kDa, kDm, kDattnScale, kDmlpScale, kDrho, kDpost };

// Places in a row of sums: dattn_scale [d], dmlp_scale [d], drho [2], dpost [2,2].
std::int64_t sums_width(std::int64_t width) {
  return 2 * width + 6;
}

void check_backward(Checker& check) {
  check_inputs(check);
  for (const std::uint32_t argument : {kDout0, kDout1, kDlane0, kDlane1, kDa, kDm})
    check.like(argument, kLane0);
  check.like(kDattnScale, kAttnScale);
  check.like(kDmlpScale, kMlpScale);
  check.like(kDrho, kRho);
  check.like(kDpost, kPost);
  const std::int64_t sums = sums_width(check.dim(kLane0, 1));
  check.workspace(aligned_floats(sums) * sizeof(float) + row_sums_bytes(check.dim(kLane0, 0), sums));
}

// A block of a row of floats; zeros where the tensor is absent.
template <typename T>
void load_block(float* block, const T* tensor, std::int64_t offset, std::int64_t count) {
  if (!tensor) {
    std::fill_n(block, count, 0.0f);
    return;
  }
  write_row(block, count, false, [=](std::int64_t i) { return float(tensor[offset + i]); });
}

template <typename T>
void backward(const Launch& launch) {
  const std::int64_t width = launch.dim(kLane0, 1);
  const float* rho = launch.data<const float>(kRho);
  const float* post = launch.data<const float>(kPost);
  const auto accumulate = [&](std::uint32_t gradient) { return launch.attribute(gradient - kDlane0) != 0; };
  const auto add_block = [&](float* partial, std::int64_t offset, std::int64_t column, std::int64_t count) {
    alignas(64) float blocks[4][kBlock];
    float *g0 = blocks[0], *g1 = blocks[1], *scaled_a = blocks[2], *scaled_m = blocks[3];
    const float* attn_scale = launch.data<const float>(kAttnScale) + column;
    const float* mlp_scale = launch.data<const float>(kMlpScale) + column;
    const T* a = launch.data<const T>(kA) + offset;
    const T* m = launch.data<const T>(kM) + offset;
    load_block(g0, launch.data<const T>(kDout0), offset, count);
    load_block(g1, launch.data<const T>(kDout1), offset, count);
    write_row(scaled_a, count, false, [=](std::int64_t i) { return attn_scale[i] * float(a[i]); });
    write_row(scaled_m, count, false, [=](std::int64_t i) { return mlp_scale[i] * float(m[i]); });
    const float post00 = post[0], post01 = post[1], post10 = post[2], post11 = post[3];
    const auto of_a = [=](std::int64_t i) { return post00 * g0[i] + post01 * g1[i]; };
    const auto of_m = [=](std::int64_t i) { return post10 * g0[i] + post11 * g1[i]; };
    if (launch.has(kDa)) {
      write_row(launch.data<T>(kDa) + offset, count, accumulate(kDa),
                [=](std::int64_t i) { return attn_scale[i] * of_a(i); });
    }
    if (launch.has(kDm)) {
      write_row(launch.data<T>(kDm) + offset, count, accumulate(kDm),
                [=](std::int64_t i) { return mlp_scale[i] * of_m(i); });
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      if (!launch.has(kDlane0 + i)) continue;
      const float* gradient = blocks[i];
      const float of_lane = rho[i];
      write_row(launch.data<T>(kDlane0 + i) + offset, count, accumulate(kDlane0 + i),
                [=](std::int64_t j) { return of_lane * gradient[j]; });
    }
    if (!partial) return;
    write_row(partial + column, count, true, [=](std::int64_t i) { return of_a(i) * float(a[i]); });
    write_row(partial + width + column, count, true, [=](std::int64_t i) { return of_m(i) * float(m[i]); });
    float* drho = partial + 2 * width;
    float* dpost = drho + 2;
    for (std::uint32_t i = 0; i < 2; ++i) {
      const T* lane = launch.data<const T>(kLane0 + i) + offset;
      const float* gradient = blocks[i];
      drho[i] += lane_sum(count, [=](std::int64_t j) { return gradient[j] * float(lane[j]); });
      dpost[i] += lane_sum(count, [=](std::int64_t j) { return gradient[j] * scaled_a[j]; });
      dpost[2 + i] += lane_sum(count, [=](std::int64_t j) { return gradient[j] * scaled_m[j]; });
    }
  };
  const std::int64_t sums = sums_width(width);
  float* total = launch.workspace<float>();
  std::fill_n(total, sums, 0.0f);
  const bool wanted =
      launch.has(kDattnScale) || launch.has(kDmlpScale) || launch.has(kDrho) || launch.has(kDpost);
  add_row_sums(launch, launch.dim(kLane0, 0), sums, total + aligned_floats(sums), wanted ? total : nullptr,
               [&](float* partial, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   for (std::int64_t column = 0; column < width; column += kBlock) {
                     add_block(partial, row * width + column, column, std::min(kBlock, width - column));
                   }
                 }
               });
  const auto add = [](float* to, const float* from, std::int64_t count) {
    for (std::int64_t j = 0; to && j < count; ++j) to[j] += from[j];
  };
  add(launch.data<float>(kDattnScale), total, width);
  add(launch.data<float>(kDmlpScale), total + width, width);
  add(launch.data<float>(kDrho), total + 2 * width, 2);
  add(launch.data<float>(kDpost), total + 2 * width + 2, 4);
}

void run_backward(const Launch& launch) {
  dispatch_compute(launch.dtype(kLane0), [&]<typename T>() { backward<T>(launch); });
}

MULLIGAN_CPU_KERNEL(
    lane_merge_fwd,
    "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, out out0, out out1",
    check_forward, run_forward)
MULLIGAN_CPU_KERNEL(
    lane_merge_bwd,
    "in lane0, in lane1, in a, in m, in attn_scale, in mlp_scale, in rho, in post, in? dout0, "
    "in? dout1, inout? dlane0, inout? dlane1, inout? da, inout? dm, inout? dattn_scale, "
    "inout? dmlp_scale, inout? drho, inout? dpost; accumulate_dlane0 accumulate_dlane1 accumulate_da "
    "accumulate_dm",
    check_backward, run_backward)

}  // namespace
}  // namespace mulligan::cpu

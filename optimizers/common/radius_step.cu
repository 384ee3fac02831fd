// A step of matrices that minds their norm; formulas in radius_step.h.
//
// Three passes: rows (three sums of each), one block per matrix (what the elements of each row need), elements.
// Determinism: a row and a matrix are each summed by one block, in f64, in a fixed order.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(columns)
MLG_CONST_INT(matrix_rows)
MLG_CONST_INT(floor_kind)  // UpdateFloor
MLG_CONST_INT(pin_kind)    // RadiusPin
MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(outward)
MLG_CONST_FLOAT(floor_ratio)
MLG_CONST_FLOAT(cautious_decay)
MLG_CONST_FLOAT(eps)

// Of rows or matrices: <O,O>, <O,W>, <W,W>.
struct RadiusSums {
  double oo, ow, ww;
  __device__ RadiusSums without(double k) const { return {oo - 2 * k * ow + k * k * ww, ow - k * ww, ww}; }
  __device__ double distance() const { return sqrt(max(oo, 0.0)); }
  __device__ double radius() const { return sqrt(ww); }
  __device__ double floor_factor() const {
    return max(1.0, double(floor_ratio) * max(radius(), double(eps)) / max(distance(), double(eps)));
  }
};

// The sums of all threads' sums, in every thread.
__device__ inline RadiusSums block_sums(const RadiusSums& own, shared_array<double, 32>& scratch) {
  const int warps = int(blockDim.x) / 32;
  RadiusSums all;
  all.oo = block_sum(own.oo, scratch, warps);
  all.ow = block_sum(own.ow, scratch, warps);
  all.ww = block_sum(own.ww, scratch, warps);
  return all;
}

// One block per row. sums [rows, 3].
MLG_KERNEL(radius_rows, columns, scale)
template <typename Direction, typename Master>
__global__ void radius_rows(global<const Direction> direction, global<Master> master, global<double> sums) {
  __shared__ shared_array<double, 32> scratch;
  const long long row = blockIdx.x;
  RadiusSums own = {0, 0, 0};
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    float d[1], m[1];
    load<1>(direction, row * columns + j, d);
    load<1>(master, row * columns + j, m);
    const double o = double(scale) * d[0], w = m[0];
    own.oo += o * o;
    own.ow += o * w;
    own.ww += w * w;
  }
  own = block_sums(own, scratch);
  if (threadIdx.x != 0) return;
  sums[3 * row] = own.oo;
  sums[3 * row + 1] = own.ow;
  sums[3 * row + 2] = own.ww;
}

// One block per matrix. rows [rows, 3]: braked, factor, shrink of the elements of a row.
MLG_KERNEL(radius_settle, matrix_rows, floor_kind, pin_kind, lr_multiplier, outward, floor_ratio, eps)
__global__ void radius_settle(global<double> sums, global<const float> scalars, global<float> rows) {
  __shared__ shared_array<double, 32> scratch;
  const long long first = blockIdx.x * (long long)(matrix_rows);
  const double rate = double(float(scalars[0])) * lr_multiplier, least = eps;
  const auto row_sums = [&](int i) {
    const long long at = 3 * (first + i);
    return RadiusSums{sums[at], sums[at + 1], sums[at + 2]};
  };
  RadiusSums all = {0, 0, 0};
  for (int i = threadIdx.x; i < matrix_rows; i += blockDim.x) {
    const RadiusSums row = row_sums(i);
    all.oo += row.oo;
    all.ow += row.ow;
    all.ww += row.ww;
  }
  all = block_sums(all, scratch);
  const double radial = all.ow / max(all.ww, 1e-12);
  const double braked = radial < 0 ? (1 - double(outward)) * radial : 0.0;
  double factor = 1;
  if (floor_kind == 1) factor = all.without(braked).floor_factor();
  if (floor_kind == 3) factor = all.radius() / max(all.without(braked).distance(), least);
  RadiusSums update = {0, 0, 0};
  for (int i = threadIdx.x; i < matrix_rows; i += blockDim.x) {
    const RadiusSums row = row_sums(i).without(braked);
    const double own = floor_kind == 2 ? row.floor_factor() : factor;
    update.oo += own * own * row.oo;
    update.ow += own * row.ow;
    update.ww += row.ww;
    rows[3 * (first + i)] = float(braked);
    rows[3 * (first + i) + 1] = float(rate * own);
  }
  update = block_sums(update, scratch);
  const double before = max(all.radius(), least);
  const double target = pin_kind == 2 ? all.radius() : max(before - rate * update.ow / before, least);
  const double after = update.ww - 2 * rate * update.ow + rate * rate * update.oo;  // the square
  const double shrink = pin_kind == 0 ? 1.0 : target / max(sqrt(max(after, 0.0)), least);
  for (int i = threadIdx.x; i < matrix_rows; i += blockDim.x) rows[3 * (first + i) + 2] = float(shrink);
}

MLG_KERNEL(radius_apply, columns, lr_multiplier, scale, cautious_decay)
template <typename Direction, typename Master>
__global__ void radius_apply(global<const Direction> direction, global<Master> master,
                             global<const float> scalars, global<float> rows, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const long long row = 3 * (i / columns);
  float d[1], w[1];
  load<1>(direction, i, d);
  load<1>(master, i, w);
  const float o = scale * d[0] - rows[row] * w[0];
  float moved[1] = {(w[0] - rows[row + 1] * o) * rows[row + 2]};
  if (o * w[0] > 0) moved[0] *= 1.0f - scalars[0] * lr_multiplier * cautious_decay * scalars[2];
  store<1>(master, i, moved);
}

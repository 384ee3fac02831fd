// Whole-tensor sums and what the trainer does with them:
//   sum_f64          total += sum(x)            sum_squares_f64  total += sum(x^2)         (f64)
//   clip_scale       norm = sqrt(total), scale = min(1, max_norm / (norm + 1e-6)); max_norm = 0: scale = 1
//   scale_by         x *= scale                 lerp_into        average = keep average + take x
//   record_scalar    ring[index mod n] = x
//
// Determinism: a block sums a fixed piece in a fixed order, in f64; one block adds the pieces' sums.
#include <mulligan/cuda/elements.cuh>

// max_norm = high + low: a double in two floats.
MLG_CONST_FLOAT(max_norm_high)
MLG_CONST_FLOAT(max_norm_low)
MLG_CONST_FLOAT(keep)
MLG_CONST_FLOAT(take)

__device__ inline double to_double(double value) {
  return value;
}
__device__ inline double to_double(float value) {
  return value;
}
__device__ inline double to_double(bf16 value) {
  return to_float(value);
}
__device__ inline double to_double(f16 value) {
  return to_float(value);
}

// The sum of x^power over [begin, end) of piece blockIdx.x goes to partial[blockIdx.x], or, where partial is
// null (there is one piece), into total. `piece` is a multiple of blockDim.x * N.
MLG_KERNEL(sum_pieces)
template <typename T, int N, int power>
__global__ void sum_pieces(global<const T> x, global<double> partial, global<double> total, long long count,
                           long long piece) {
  __shared__ shared_array<double, 32> scratch;
  const long long begin = blockIdx.x * piece, end = min(count, begin + piece);
  double sum = 0;
  for (long long i = begin + (long long)(threadIdx.x) * N; i < end; i += (long long)(blockDim.x) * N) {
    T values[N];
    load_raw<N>(x, i, values);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      const double value = to_double(values[n]);
      sum += power == 2 ? value * value : value;
    }
  }
  sum = block_sum(sum, scratch, int(blockDim.x) / 32);
  if (threadIdx.x != 0) return;
  if (partial) {
    partial[blockIdx.x] = sum;
  } else {
    total[0] += sum;
  }
}

// total += sum(partial[0..parts)). One block.
MLG_KERNEL(add_pieces)
__global__ void add_pieces(global<const double> partial, global<double> total, int parts) {
  __shared__ shared_array<double, 32> scratch;
  double sum = 0;
  for (int i = threadIdx.x; i < parts; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum, scratch, int(blockDim.x) / 32);
  if (threadIdx.x == 0) total[0] += sum;
}

// One thread.
MLG_KERNEL(clip_scale, max_norm_high, max_norm_low)
__global__ void clip_scale(global<const double> total, global<float> norm, global<float> scale) {
  const double max_norm = double(max_norm_high) + double(max_norm_low), length = sqrt(total[0]);
  const double wanted = max_norm / (length + 1e-6);
  norm[0] = float(length);
  scale[0] = max_norm == 0 || !(wanted < 1.0) ? 1.0f : float(wanted);
}

MLG_KERNEL(scale_by)
template <int N>
__global__ void scale_by(global<float> x, global<const float> scale, long long count) {
  const long long i = first_element<N>();
  const float factor = scale[0];
  if (i >= count || factor == 1.0f) return;  // a clip that does not bite costs no memory traffic
  float values[N];
  load<N>(x, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] *= factor;
  store<N>(x, i, values);
}

MLG_KERNEL(lerp_into, keep, take)
template <typename T, int N>
__global__ void lerp_into(global<float> average, global<const T> x, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N], news[N];
  load<N>(average, i, values);
  load<N>(x, i, news);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) values[n] = keep * values[n] + take * news[n];
  store<N>(average, i, values);
}

// One thread.
MLG_KERNEL(record_scalar)
template <typename T>
__global__ void record_scalar(global<const T> x, global<const int64_t> index, global<double> ring,
                              long long length) {
  const long long place = index[0] % length;
  ring[place < 0 ? place + length : place] = to_double(x[0]);
}

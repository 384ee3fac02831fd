// Momentum in SOAP's bases and the trust in it; formulas in whitening.h.
//
// Determinism: elements are independent; a row and the matrix are each summed by one block, in f64, in a fixed order.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(columns)
MLG_CONST_INT(matrix_rows)
MLG_CONST_FLOAT(beta2)
MLG_CONST_FLOAT(one_minus_beta2)
MLG_CONST_FLOAT(agreement)

constexpr int kFirst = 3, kTrustFloor = 4, kTrustCap = 5;  // SoapScalar
constexpr int kTrustSums = 6;

MLG_KERNEL(soap_whiten, beta2, one_minus_beta2)
__global__ void soap_whiten(global<const float> p, global<float> v, global<float> white, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const float value = p[i], moment = beta2 * v[i] + one_minus_beta2 * (value * value);
  v[i] = moment;
  white[i] = value / sqrtf(max(moment, 1e-16f));
}

MLG_KERNEL(soap_keep_norm)
__global__ void soap_keep_norm(global<const float> raw, global<const float> raw_norm, global<const float> x,
                               global<const float> x_norm, global<const float> scalars, global<float> result,
                               long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const float factor = max(float(raw_norm[0]), 1e-8f) / max(float(x_norm[0]), 1e-8f);
  result[i] = scalars[kFirst] != 0 ? float(raw[i]) : x[i] * factor;
}

// One block per row. sums [rows, 6].
MLG_KERNEL(soap_trust_rows, columns)
__global__ void soap_trust_rows(global<const float> raw, global<const float> white,
                                global<const float> gradient, global<double> sums) {
  __shared__ shared_array<double, 32> scratch;
  const long long first = blockIdx.x * (long long)(columns);
  double own[kTrustSums] = {0, 0, 0, 0, 0, 0};
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    const double r = raw[first + j], w = white[first + j], g = gradient[first + j];
    own[0] += r * r;
    own[1] += w * w;
    own[2] += g * g;
    own[3] += w * r;
    own[4] += w * g;
    own[5] += r * g;
  }
  for (int k = 0; k < kTrustSums; ++k) {
    const double sum = block_sum(own[k], scratch, int(blockDim.x) / 32);
    if (threadIdx.x == 0) sums[kTrustSums * (long long)(blockIdx.x) + k] = sum;
  }
}

__device__ inline double cosine(double product, double a, double b) {
  return product / max(sqrt(a) * sqrt(b), 1e-8);
}
__device__ inline double clip(double value) {
  return min(max(value, 0.0), 1.0);
}

// One block.
MLG_KERNEL(soap_trust_gate, matrix_rows, agreement)
__global__ void soap_trust_gate(global<double> sums, global<const float> scalars, global<float> gate) {
  __shared__ shared_array<double, 32> scratch;
  double all[kTrustSums];
  for (int k = 0; k < kTrustSums; ++k) {
    double own = 0;
    for (int i = threadIdx.x; i < matrix_rows; i += blockDim.x) own += sums[kTrustSums * (long long)(i) + k];
    all[k] = block_sum(own, scratch, int(blockDim.x) / 32);
  }
  if (threadIdx.x != 0) return;
  const double least = agreement;
  const double agrees = clip((cosine(all[3], all[1], all[0]) - least) / (1 - least));
  const double along = cosine(all[4], all[1], all[2]) / max(cosine(all[5], all[0], all[2]), 1e-8);
  const float trust = float(clip(agrees * clip(along)));
  gate[0] = trust;
  gate[1] = min(max(trust, float(scalars[kTrustFloor])), float(scalars[kTrustCap]));
}

MLG_KERNEL(soap_trust_blend)
__global__ void soap_trust_blend(global<const float> raw, global<const float> white, global<float> gate,
                                 global<float> blended, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const float r = raw[i];
  blended[i] = r + gate[1] * (white[i] - r);
}

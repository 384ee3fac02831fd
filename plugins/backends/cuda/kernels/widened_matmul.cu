// widened_matmul on a [m, k] f32 and b of 16 bits, [n, k] with transpose_b and [k, n] without:
//   c = a op(b) + beta c, c [m, n] f32
//
// A block takes 64 x 64 elements of c and goes over the inner dimension in pieces of 16, which it brings to
// shared memory, b widened on the way; a thread keeps 4 x 4 sums in registers. Plain f32 multiply-adds: no
// tensor cores, so no TF32 and no rounding of a. Determinism: one thread adds up an element, in the order of
// the inner dimension, whatever m is: a row's result does not depend on how many rows there are.
#include <mulligan/cuda/device.cuh>

MLG_CONST_INT(transpose_b)
MLG_CONST_FLOAT(beta)

constexpr int kExtent = 64;               // rows and columns of a block's part of c
constexpr int kPiece = 16;                // of the inner dimension
constexpr int kShare = 4;                 // rows and columns of a thread
constexpr int kThreads = 256;             // (kExtent / kShare)^2
constexpr int kPitch = kExtent + kShare;  // between the lines of a piece: threads that store meet fewer banks

MLG_KERNEL(widened_matmul, transpose_b, beta)
template <typename W>
__global__ void __launch_bounds__(kThreads)
    widened_matmul(global<const float> a, global<const W> b, global<float> c, int m, int n, int k) {
  __shared__ shared_array<float, kPiece * kPitch> left, right;  // [inner][row], [inner][column]
  const int columns_of_blocks = (n + kExtent - 1) / kExtent;
  const int first_row = int(blockIdx.x) / columns_of_blocks * kExtent,
            first_column = int(blockIdx.x) % columns_of_blocks * kExtent;
  const int thread = threadIdx.x;
  const int row = thread / (kExtent / kShare) * kShare, column = thread % (kExtent / kShare) * kShare;
  float sums[kShare][kShare];
  MLG_UNROLL
  for (int i = 0; i < kShare; ++i) {
    MLG_UNROLL
    for (int j = 0; j < kShare; ++j) sums[i][j] = 0;
  }
  for (int at = 0; at < k; at += kPiece) {
    __syncthreads();
    MLG_UNROLL
    for (int part = 0; part < kExtent * kPiece / kThreads; ++part) {
      const int place = thread + part * kThreads;
      const int line = place / kPiece, inner = place % kPiece;
      const bool in_a = first_row + line < m && at + inner < k;
      left[inner * kPitch + line] = in_a ? a[(long long)(first_row + line) * k + at + inner] : 0.0f;
      if (transpose_b) {
        const bool in_b = first_column + line < n && at + inner < k;
        right[inner * kPitch + line] =
            in_b ? to_float(b[(long long)(first_column + line) * k + at + inner]) : 0.0f;
      } else {
        const int depth = place / kExtent, beside = place % kExtent;
        const bool in_b = at + depth < k && first_column + beside < n;
        right[depth * kPitch + beside] =
            in_b ? to_float(b[(long long)(at + depth) * n + first_column + beside]) : 0.0f;
      }
    }
    __syncthreads();
    const int depth = min(kPiece, k - at);
    for (int inner = 0; inner < depth; ++inner) {
      float from_a[kShare], from_b[kShare];
      MLG_UNROLL
      for (int i = 0; i < kShare; ++i) {
        from_a[i] = left[inner * kPitch + row + i];
        from_b[i] = right[inner * kPitch + column + i];
      }
      MLG_UNROLL
      for (int i = 0; i < kShare; ++i) {
        MLG_UNROLL
        for (int j = 0; j < kShare; ++j) sums[i][j] += from_a[i] * from_b[j];
      }
    }
  }
  MLG_UNROLL
  for (int i = 0; i < kShare; ++i) {
    MLG_UNROLL
    for (int j = 0; j < kShare; ++j) {
      if (first_row + row + i >= m || first_column + column + j >= n) continue;
      const long long place = (long long)(first_row + row + i) * n + first_column + column + j;
      c[place] = beta == 0 ? sums[i][j] : sums[i][j] + beta * c[place];
    }
  }
}

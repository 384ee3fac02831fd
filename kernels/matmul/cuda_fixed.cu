// fixed_matmul: matmul and matmul_add in the place of cuBLASLt, which chooses by the shape how it sums
// (backend.batch_invariant). widened_matmul: a f32, b of 16 bits. Of both:
//   c = alpha op(a) op(b) + beta term, pair by pair; op(a) [m, k], op(b) [k, n], c and term [m, n], row-major
//
// A block computes 64 x 64 elements of c. It goes over the inner dimension in pieces of 16 and brings them to shared memory as
// floats, so a and b may have different dtypes. A thread keeps 4 x 4 sums in registers. It uses plain f32 multiply-adds and no
// tensor cores, so there is no TF32, and nothing is rounded before it is multiplied. Determinism: one thread sums an element in
// the order of the inner dimension, which is never split. So a row's bits depend neither on the number of rows nor on its place.
#include <mulligan/cuda/device.cuh>

MLG_CONST_INT(transpose_a)
MLG_CONST_INT(transpose_b)
MLG_CONST_FLOAT(alpha)
MLG_CONST_FLOAT(beta)

constexpr int kExtent = 64;               // rows and columns of a block's part of c
constexpr int kPiece = 16;                // of the inner dimension
constexpr int kShare = 4;                 // rows and columns of a thread
constexpr int kThreads = 256;             // (kExtent / kShare)^2
constexpr int kPitch = kExtent + kShare;  // between the lines of a piece: threads that store meet fewer banks

// piece[inner][line] of 64 lines from `first` on and the inner elements from `at` on; zeros beyond both extents.
// `lines_last`: the matrix is [inner, lines], otherwise [lines, inner]. By the whole block.
template <typename P>
__device__ inline void load_piece(P matrix, bool lines_last, int first, int lines, int at, int inner,
                                  shared_array<float, kPiece * kPitch>& piece) {
  MLG_UNROLL
  for (int part = 0; part < kExtent * kPiece / kThreads; ++part) {
    const int place = int(threadIdx.x) + part * kThreads;
    const int line = lines_last ? place % kExtent : place / kPiece,
              depth = lines_last ? place / kExtent : place % kPiece;
    const bool inside = first + line < lines && at + depth < inner;
    const long long element = lines_last ? (long long)(at + depth) * lines + (first + line)
                                         : (long long)(first + line) * inner + (at + depth);
    piece[depth * kPitch + line] = inside ? to_float(matrix[element]) : 0.0f;
  }
}

// c = matmul_factor op(a) op(b) + term_factor term, the elements of the running block; c may be term.
template <typename A, typename B, typename C>
__device__ inline void multiply(global<const A> a, bool a_transposed, global<const B> b, bool b_transposed,
                                float matmul_factor, float term_factor, global<const C> term, global<C> c,
                                int m, int n, int k) {
  __shared__ shared_array<float, kPiece * kPitch> left, right;  // [inner][row], [inner][column]
  const int columns_of_blocks = (n + kExtent - 1) / kExtent;
  const int first_row = int(blockIdx.x) / columns_of_blocks * kExtent,
            first_column = int(blockIdx.x) % columns_of_blocks * kExtent;
  const int row = int(threadIdx.x) / (kExtent / kShare) * kShare,
            column = int(threadIdx.x) % (kExtent / kShare) * kShare;
  float sums[kShare][kShare] = {};
  for (int at = 0; at < k; at += kPiece) {
    __syncthreads();
    load_piece(a, a_transposed, first_row, m, at, k, left);
    load_piece(b, !b_transposed, first_column, n, at, k, right);
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
      const float scaled = matmul_factor * sums[i][j];
      c[place] = Narrow<C>::from(term_factor == 0 ? scaled : scaled + term_factor * to_float(term[place]));
    }
  }
}

MLG_KERNEL(fixed_matmul, transpose_a, transpose_b, alpha, beta)
template <typename T, typename C>
__global__ void __launch_bounds__(kThreads, 2)  // 2: registers go before a third block, so none is spilled
    fixed_matmul(global<const T> a, global<const T> b, global<const C> term, global<C> c, int m, int n,
                 int k) {
  const long long pair = blockIdx.y;
  multiply(a + pair * m * k, transpose_a, b + pair * k * n, transpose_b, alpha, beta, term + pair * m * n,
           c + pair * m * n, m, n, k);
}

// W: of 16 bits.
MLG_KERNEL(widened_matmul, transpose_b, beta)
template <typename W>
__global__ void __launch_bounds__(kThreads)  // without pairs it takes fewer registers: three blocks
    widened_matmul(global<const float> a, global<const W> b, global<float> c, int m, int n, int k) {
  multiply(a, false, b, transpose_b, 1.0f, beta, global<const float>(c), c, m, n, k);
}

// Kernels that work on the rows of a [rows, width] tensor: a group of threads takes a row and keeps it in
// registers, `held` accesses of N elements per thread. The host side is sdk::RowPlan (row_plan.hpp).
//
// A group is one warp (a block then has several) or the whole block. A row that is too wide for its registers
// is taken in several slices, one after another; what needs the row again then reads it again.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {  // the constants are this file's own

MLG_CONST_INT(width)        // elements of a row
MLG_CONST_INT(row_threads)  // of a group: 32, or the whole block
MLG_CONST_INT(row_block)    // of a block
MLG_CONST_INT(held)         // accesses per thread and slice, at most kMostHeld
MLG_CONST_INT(slices)       // of a row
#define MLG_ROW_CONSTANTS width, row_threads, row_block, held, slices

constexpr int kMostHeld = 4;

// The rows of the running thread's group: [row, end), one after another.
struct RowGroup {
  int thread;     // in the group
  int slice = 0;  // the running one
  long long row, end;

  // Each group takes `rows_per_group` rows.
  __device__ RowGroup(long long rows, long long rows_per_group) {
    thread = int(threadIdx.x) % row_threads;
    row = (blockIdx.x * (long long)(int(blockDim.x) / row_threads) + int(threadIdx.x) / row_threads) *
          rows_per_group;
    end = min(rows, row + rows_per_group);
  }
  // Which of all groups this is.
  __device__ long long index() const {
    return blockIdx.x * (long long)(int(blockDim.x) / row_threads) + int(threadIdx.x) / row_threads;
  }
};

// What a thread holds of a slice: held x N floats.
template <int N>
struct RowValues {
  float v[MLG_CAPACITY(held, kMostHeld)][N];
};

// body() for each slice of a row.
template <typename Body>
__device__ inline void for_slices(RowGroup& group, Body body) {
  for (group.slice = 0; group.slice < slices; ++group.slice) body();
  group.slice = 0;
}

// body(i, column) for each access of the thread to the slice; the columns [column, column + N) lie
// inside the row.
template <int N, typename Body>
__device__ inline void for_columns(const RowGroup& group, Body body) {
  MLG_UNROLL
  for (int i = 0; i < held; ++i) {
    const int column = ((group.slice * held + i) * row_threads + group.thread) * N;
    if (column < width) body(i, column);
  }
}

template <int N, typename P>
__device__ inline void load_row(const RowGroup& group, P p, long long row, RowValues<N>& out) {
  for_columns<N>(group, [&](int i, int column) { load<N>(p, row * width + column, out.v[i]); });
}

template <int N, typename P>
__device__ inline void store_row(const RowGroup& group, P p, long long row, const RowValues<N>& values,
                                 bool accumulate = false) {
  for_columns<N>(group,
                 [&](int i, int column) { store<N>(p, row * width + column, values.v[i], accumulate); });
}

// The same for floats of the columns, at p[at + column].
template <int N, typename P>
__device__ inline void load_columns(const RowGroup& group, P p, long long at, RowValues<N>& out) {
  for_columns<N>(group, [&](int i, int column) { load<N>(p, at + column, out.v[i]); });
}

template <int N, typename P>
__device__ inline void store_columns(const RowGroup& group, P p, long long at, const RowValues<N>& values) {
  for_columns<N>(group, [&](int i, int column) { store<N>(p, at + column, values.v[i]); });
}

template <int N>
__device__ inline void clear(const RowGroup& group, RowValues<N>& values) {
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] = 0;
  });
}

// N neighbouring elements of T as they are stored, in as few registers.
template <typename T, int N>
struct Words {
  T element[N];
  template <typename P>
  __device__ void load(P p, long long i) {
    copy_in<N>(p, i, element);
  }
  __device__ void clear() {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) element[n] = {};
  }
  __device__ float get(int n) const { return to_float(element[n]); }
};
#ifdef __CUDACC__
// Left to itself the compiler gives each element of 16 bits a register.
template <typename T, int N>
struct HalfWords {
  uint32_t word[(N + 1) / 2];
  __device__ void load(const T* p, long long i) {
    if constexpr (N == 1) {
      word[0] = p[i].bits;
    } else {
      const Pack<uint32_t, N / 2> pack = *reinterpret_cast<const Pack<uint32_t, N / 2>*>(p + i);
#pragma unroll
      for (int n = 0; n < N / 2; ++n) word[n] = pack.v[n];
    }
  }
  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < (N + 1) / 2; ++n) word[n] = 0;
  }
};
template <int N>
struct Words<bf16, N> : HalfWords<bf16, N> {
  __device__ float get(int n) const {
    return bits_to_float(n % 2 == 0 ? this->word[n / 2] << 16 : this->word[n / 2] & 0xFFFF0000u);
  }
};
template <int N>
struct Words<f16, N> : HalfWords<f16, N> {
  __device__ float get(int n) const { return to_float(f16{uint16_t(this->word[n / 2] >> (n % 2 * 16))}); }
};
#endif

// Whether both point to the same place.
#ifdef __CUDACC__
template <typename T>
__device__ inline bool same(T* a, T* b) {
  return a == b;
}
#else
template <typename T>
bool same(global<T> a, global<T> b) {  // the address comes first
  return std::memcmp(&a, &b, sizeof(T*)) == 0;
}
#endif

// What a thread holds of a slice, as stored: half the registers of RowValues where T is bf16. A kernel that
// loads all that it reads of a row before it stores anything waits for memory once a row; loads after
// stores, which may alias, wait again.
template <typename T, int N>
struct RowPacks {
  Words<T, N> v[MLG_CAPACITY(held, kMostHeld)];
  __device__ float operator()(int i, int n) const { return v[i].get(n); }
};

template <typename T, int N, typename P>
__device__ inline void load_packs(const RowGroup& group, P p, long long row, RowPacks<T, N>& out) {
  for_columns<N>(group, [&](int i, int column) { out.v[i].load(p, row * width + column); });
}

// The same, or zeros where p is null.
template <typename T, int N, typename P>
__device__ inline void load_packs_or_zeros(const RowGroup& group, P p, long long row, RowPacks<T, N>& out) {
  for_columns<N>(group, [&](int i, int column) {
    if (p) {
      out.v[i].load(p, row * width + column);
    } else {
      out.v[i].clear();
    }
  });
}

// p[at..at+N) = values, rounded; added to `before`, access i of what was loaded from there, where
// `accumulate`.
template <typename T, int N, typename P>
__device__ inline void store_onto(P p, long long at, const float (&values)[N], const RowPacks<T, N>& before,
                                  int i, bool accumulate) {
  float result[N];
  MLG_UNROLL
  for (int n = 0; n < N; ++n) result[n] = accumulate ? before(i, n) + values[n] : values[n];
  store<N>(p, at, result);
}

// The same for a p that may be null, or be `other`, which was stored to after `before` had been loaded.
template <typename T, int N, typename P>
__device__ inline void store_onto_after(P other, P p, long long at, const float (&values)[N],
                                        const RowPacks<T, N>& before, int i, bool accumulate) {
  if (p && accumulate && same(p, other)) {
    store<N>(p, at, values, true);
  } else if (p) {
    store_onto(p, at, values, before, i, accumulate);
  }
}

// The sum of term(i, n) over what the thread holds of the slice.
template <int N, typename Term>
__device__ inline float slice_sum(const RowGroup& group, Term term) {
  float sum = 0;
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) sum += term(i, n);
  });
  return sum;
}

// The sum over the group's threads, in each of them; all of them must call it.
__device__ inline float group_sum(float of_thread, shared_array<float, 32>& scratch) {
  return block_sum(of_thread, scratch, row_threads / 32);
}

// Room for add_groups().
using GroupScratch = shared_array<float, 3 * 32 * 8>;

// The values of the block's groups added up in the first of them, in their order; whether this thread is of
// that one. All threads of a block must call it, with zeros where they had no rows, and rows of one slice.
template <int N>
__device__ inline bool add_groups(const RowGroup& group, RowValues<N>& values, GroupScratch& scratch) {
  const int groups = int(blockDim.x) / row_threads, own = int(threadIdx.x) / row_threads;
  if (groups == 1) return true;
  MLG_UNROLL
  for (int i = 0; i < held; ++i) {
    const int column = (i * row_threads + group.thread) * N;
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      if (own > 0 && column < width) scratch[((own - 1) * 32 + group.thread) * N + n] = values.v[i][n];
    }
    __syncthreads();
    for (int other = 0; other + 1 < groups && own == 0 && column < width; ++other) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values.v[i][n] += scratch[(other * 32 + group.thread) * N + n];
    }
    __syncthreads();
  }
  return own == 0;
}

// The group's sums over its rows, at partial[at + column] for what adds them up (columns.cuh). Rows of one slice keep
// them in registers from the first row to the last one: begin_sums() before it, end_sums() after it. Others take and
// leave them in `partial` with each row. Where partial is null they are not kept, and zeros.
template <int N>
__device__ inline void begin_sums(const RowGroup& group, bool first, global<float> partial, long long at,
                                  RowValues<N>& sums) {
  if (first || !partial) {
    clear<N>(group, sums);
  } else {
    load_columns<N>(group, partial, at, sums);
  }
}

// By the whole block where rows have one slice.
template <int N>
__device__ inline void end_sums(const RowGroup& group, global<float> partial, long long at,
                                RowValues<N>& sums, GroupScratch& scratch) {
  if (!partial) return;
  if (slices > 1 || add_groups<N>(group, sums, scratch)) store_columns<N>(group, partial, at, sums);
}

// 1 / sqrt(mean square + eps)
__device__ inline float reciprocal_rms(float sum_of_squares, float epsilon) {
  return rsqrtf(sum_of_squares / float(width) + epsilon);
}

// The gradient of n = scale y / rms(y) at dn: dy = factor dn - along y.
struct NormGradient {
  float factor = 0, along = 0;

  __device__ NormGradient() {}
  // Sums over the row: of y^2, and of y dn.
  __device__ NormGradient(float squares, float product, float scale, float epsilon) {
    const float r = reciprocal_rms(squares, epsilon);
    factor = scale * r;
    along = factor * r * r * product / float(width);
  }
};

template <int N>
__device__ inline void scale_row(const RowGroup& group, RowValues<N>& values, float factor) {
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] *= factor;
  });
}

}  // namespace

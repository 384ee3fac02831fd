// Kernels with one planted fault each (`fault` 1 or more), and what they would be without it (0).
// x [count] float, y [count] float or bf16, count a multiple of 64; blocks of 64 threads, one block more than needed.
#include <mulligan/cuda/device.cuh>

MLG_CONST_INT(fault)

constexpr int kThreads = 64;

// y = x. Fault 1: one element too many. 2: one too few. 3: elements twice as far apart as they are.
MLG_KERNEL(copy_elements, fault)
__global__ void copy_elements(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count + (fault == 1 ? 1 : fault == 2 ? -1 : 0)) y[i] = x[fault == 3 ? 2 * i : i];
}

// y = x. Fault 1: from an address that 16 bytes do not divide.
MLG_KERNEL(copy_packs, fault)
__global__ void copy_packs(global<const float> x, global<float> y, int count) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= count) return;
  float values[4];
  if (fault == 1 && i > 0 && i + 8 <= count) {
    load<4>(x, i + 1, values);
  } else {
    load<4>(x, i, values);
  }
  store<4>(y, i, values);
}

// y = x reversed within blocks. Fault 1: no barrier between writing and reading. 2: none between reading and writing
// again. 3: a barrier that half of the warps reach. 4: threads that are done leave before the others' barrier. 5: half of
// the shared memory is never written. 6: the two halves wait at different barriers. 7: an index one past the end of the
// shared array. 8: one past the end of x. 9: one past the end of y.
MLG_KERNEL(reverse_blocks, fault)
__global__ void reverse_blocks(global<const float> x, global<float> y, int count) {
  __shared__ shared_array<float, kThreads> tile;
  const int thread = threadIdx.x, base = blockIdx.x * kThreads;
  if (base >= count) return;
  if (fault == 4 && thread >= 32) return;
  for (int pass = 0; pass < 2; ++pass) {
    if (fault != 5 || thread < 32) tile[thread] = x[base + thread + (fault == 8 ? 1 : 0)];
    if (fault == 3) {
      if (thread < 32) __syncthreads();
    } else if (fault == 6) {
      if (thread < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    } else if (fault != 1) {
      __syncthreads();
    }
    const float value = tile[fault == 3 ? thread : kThreads - (fault == 7 ? 0 : 1) - thread];
    if (fault != 2) __syncthreads();
    y[base + thread + (fault == 9 ? 1 : 0)] = value;
  }
}

// y = the sum of each warp's elements in its first one, else 0. Fault 1: the mask names half of the lanes that take part.
// 2: half of the lanes do not come to the shuffle whose mask names them. 3: a lane is read that takes no part. 4: lanes name
// different masks. 5: half of the lanes have ended.
MLG_KERNEL(sum_warps, fault)
__global__ void sum_warps(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (i >= count) return;
  float value = x[i];
  if (fault == 1) {
    value += __shfl_xor_sync(0x0000FFFFu, value, 1);
  } else if (fault == 2) {
    if (value < 16) value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
  } else if (fault == 3) {
    if (lane < 16) value += __shfl_sync(0x0000FFFFu, value, 16 + lane);
  } else if (fault == 4) {
    value += __shfl_xor_sync(lane < 16 ? 0xFFFFFFFFu : 0xFFFFFFFEu, value, 1);
  } else if (fault == 5) {
    if (lane >= 16) {
      y[i] = value;
      return;
    }
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
  } else {
    value = warp_sum(value);
  }
  y[i] = lane == 0 ? value : 0.0f;
}

// y = x through workspace. Fault 1: the last element of the workspace is read, but not written.
MLG_KERNEL(fill_workspace, fault)
__global__ void fill_workspace(global<const float> x, global<float> workspace, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count - (fault == 1)) workspace[i] = x[i];
}
MLG_KERNEL(read_workspace)
__global__ void read_workspace(global<const float> workspace, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = workspace[i];
}

// y = x. Fault 1: each block also writes the next block's first element. 2: each block reads what the one before has
// written. 3: two threads of a block read one element, and one of them also writes it.
MLG_KERNEL(copy_blocks, fault)
__global__ void copy_blocks(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  y[i] = x[i];
  if (fault == 1 && threadIdx.x == kThreads - 1 && i + 1 < count) y[i + 1] = x[i + 1];
  if (fault == 2 && threadIdx.x == 0 && i > 0) y[i] = y[i - 1];
  if (fault == 3 && threadIdx.x == 0) y[i] = y[i + 1];
}

// y = x rounded to bf16. Fault 1: towards zero, which the source hides from the CPU's compiler.
MLG_KERNEL(round_elements, fault)
__global__ void round_elements(global<const float> x, global<bf16> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  bf16 value = Narrow<bf16>::from(x[i]);
#ifdef __CUDA_ARCH__
  if (fault == 1) asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(value.bits) : "f"(x[i]));
#endif
  y[i] = value;
}

// y = x. Fault 1: by an instruction that no kernel has.
MLG_KERNEL(unknown_instruction, fault)
__global__ void unknown_instruction(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = x[i];
#ifdef __CUDA_ARCH__
  if (fault == 1) asm("add.sat.f32 %0, %1, %1;" : "=f"(value) : "f"(x[i]));
#endif
  y[i] = value;
}

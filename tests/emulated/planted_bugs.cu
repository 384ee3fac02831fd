// Kernels with one planted bug each, and what they would be without it (`bug` 0). y = x reversed
// within blocks of 64, or copies of x; x and y [count], count a multiple of 64; one block more than
// needed is launched.
#include <mulligan/cuda/device.cuh>

MLG_CONST_INT(bug)

constexpr int kThreads = 64;

// Bug 1: one element too many. Bug 2: one too few. Bug 3: elements twice as far apart as they are.
MLG_KERNEL(copy_elements, bug)
__global__ void copy_elements(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count + (bug == 1 ? 1 : bug == 2 ? -1 : 0)) y[i] = x[bug == 3 ? 2 * i : i];
}

// Bug 1: from an address that 16 bytes do not divide.
MLG_KERNEL(copy_packs, bug)
__global__ void copy_packs(global<const float> x, global<float> y, int count) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= count) return;
  float values[4];
  if (bug == 1 && i > 0 && i + 8 <= count) {
    load<4>(x, i + 1, values);
  } else {
    load<4>(x, i, values);
  }
  store<4>(y, i, values);
}

// Bug 1: no barrier between writing and reading. Bug 2: none between reading and writing again. Bug 3: a
// barrier that only half of the threads reach. Bug 4: threads that are done leave before the others' barrier.
// Bug 5: half of the shared memory is never written. Bug 6: the two halves wait at different barriers.
MLG_KERNEL(reverse_blocks, bug)
__global__ void reverse_blocks(global<const float> x, global<float> y, int count) {
  __shared__ shared_array<float, kThreads> tile;
  const int thread = threadIdx.x, base = blockIdx.x * kThreads;
  if (base >= count) return;
  if (bug == 4 && thread >= 32) return;
  for (int pass = 0; pass < 2; ++pass) {
    if (!(bug == 5 && thread >= 32)) tile[thread] = x[base + thread];
    if (bug == 3) {
      if (thread < 32) __syncthreads();
    } else if (bug == 6) {
      if (thread < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    } else if (bug != 1) {
      __syncthreads();
    }
    const float value = tile[bug == 3 ? thread : kThreads - 1 - thread];
    if (bug != 2) __syncthreads();
    y[base + thread] = value;
  }
}

// y = sum of each warp's 32 elements, in its first element, else 0. Bug 1: the mask names half of the lanes
// that take part. Bug 2: the mask names all lanes, but half of them do not come. Bug 3: reads a lane that
// takes no part. Bug 4: lanes name different masks.
MLG_KERNEL(sum_warps, bug)
__global__ void sum_warps(global<const float> x, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (i >= count) return;
  float value = x[i];
  if (bug == 1) {
    value += __shfl_xor_sync(0x0000FFFFu, value, 1);
  } else if (bug == 2) {
    if (lane < 16) value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
  } else if (bug == 3) {
    if (lane < 16) value += __shfl_sync(0x0000FFFFu, value, 16 + lane);
  } else if (bug == 4) {
    value += __shfl_xor_sync(lane < 16 ? 0xFFFFFFFFu : 0xFFFFFFFEu, value, 1);
  } else {
    value = warp_sum(value);
  }
  y[i] = lane == 0 ? value : 0.0f;
}

// y = x through workspace. Bug 1: the last element of the workspace is read, but not written.
MLG_KERNEL(fill_workspace, bug)
__global__ void fill_workspace(global<const float> x, global<float> workspace, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count - (bug == 1)) workspace[i] = x[i];
}
MLG_KERNEL(read_workspace)
__global__ void read_workspace(global<const float> workspace, global<float> y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = workspace[i];
}

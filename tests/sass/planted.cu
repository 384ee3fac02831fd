// Kernels with the faults that the machine code is searched for, and one that must pass (tests/end_to_end/sass.sh).

// bf16 pairs, one 4-byte store each: volatile keeps the compiler from joining them.
extern "C" __global__ void narrow_pairs(const uint4* u, volatile unsigned* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint4 four = u[i];
  const unsigned words[4] = {four.x, four.y, four.z, four.w};
  for (int k = 0; k < 4; ++k) {
    const float low = __uint_as_float(words[k] << 16), high = __uint_as_float(words[k] & 0xffff0000u);
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high * high), "f"(low * low));
    y[4 * i + k] = pair;
  }
}

// One bf16 in two bytes.
extern "C" __global__ void narrow_single(const float* u, unsigned short* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned short half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(2.0f * u[i]));
  y[i] = half;
}

// 64 numbers of a thread, in a block that leaves 32 registers for each.
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* u, float* y) {
  float values[64];
  for (int k = 0; k < 64; ++k) values[k] = u[threadIdx.x + k * 1024];
  for (int round = 0; round < 8; ++round) {
    __syncthreads();
    for (int k = 0; k < 64; ++k) values[k] = values[k] * values[(k + 1) % 64] + 1.0f;
  }
  for (int k = 0; k < 64; ++k) y[threadIdx.x + k * 1024] = values[k];
}

// A division in IEEE's rounding, which calls a slow path for odd operands.
extern "C" __global__ void divides(const float4* u, float4* y, float by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 four = u[i];
  four.x /= by;
  y[i] = four;
}

// f32 sums over rows, 4 bytes a thread, and bf16 in 16 bytes: as they should be.
extern "C" __global__ void sound(const uint4* u, uint4* y, float* sums, unsigned rows) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  uint4 four = {};
  for (unsigned row = 0; row < rows; ++row) {
    four = u[row * 1024 + i];
    sum += __uint_as_float(four.x << 16) + __uint_as_float(four.y << 16);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(four.x) : "f"(sum), "f"(sum));
    y[row * 1024 + i] = four;
  }
  sums[i] = sum;
}

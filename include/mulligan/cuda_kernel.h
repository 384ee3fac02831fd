/* CUDA kernels of a plugin: what prepare() of an mlg_kernel with backend "cuda" returns in mlg_preparation.state.
 *
 * A call of a kernel becomes launches of __global__ functions of the kernel's `source`. The backend compiles the source at
 * run time with the constants of the launch. Authors use cuda_kernel.hpp, which fills in these structs.
 */
#ifndef MULLIGAN_CUDA_KERNEL_H
#define MULLIGAN_CUDA_KERNEL_H

#include <mulligan/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mlg_cuda_argument_kind {
  MLG_CUDA_TENSOR = 1,    /* address of argument `index` of the kernel's signature; null when absent */
  MLG_CUDA_WORKSPACE = 2, /* address of `bytes` bytes of workspace from byte `offset` on; null for 0 bytes */
  MLG_CUDA_INT = 3,       /* int */
  MLG_CUDA_LONG = 4,      /* long long */
  MLG_CUDA_FLOAT = 5      /* float */
} mlg_cuda_argument_kind;

typedef struct mlg_cuda_argument {
  int32_t kind; /* mlg_cuda_argument_kind */
  uint32_t index;
  uint64_t offset, bytes;
  int64_t integer; /* INT, LONG */
  double number;   /* FLOAT */
} mlg_cuda_argument;

/* Value of a constant that the source declares with MLG_CONST_INT or MLG_CONST_FLOAT. */
typedef struct mlg_cuda_constant {
  const char* name;
  double value; /* exact: an integer up to 2^53, or a float */
  int32_t is_float;
} mlg_cuda_constant;

/* One value of a __global__ function's parameter list, as the emulated device passes it. */
typedef struct mlg_emulated_argument {
  const struct mlg_emulated_region* region; /* pointers: the memory they may touch; NULL for a null pointer */
  int64_t integer;
  double number;
} mlg_emulated_argument;

/* A place in the plugin's library that the emulated device fills before a launch. */
typedef struct mlg_emulated_constant {
  const char* name;
  int* integer; /* one of the two is set */
  float* number;
} mlg_emulated_constant;

/* The same __global__ function compiled for the CPU (cuda/emulation.hpp): runs one thread of a block.
 */
typedef struct mlg_emulated_function {
  void (*body)(const mlg_emulated_argument* arguments);
  struct mlg_emulator**
      emulator; /* where the library's kernels look for threadIdx, barriers and memory checks */
  const mlg_emulated_constant* constants;
  uint32_t constant_count;
} mlg_emulated_function;

typedef struct mlg_cuda_launch {
  const char* function; /* as NVRTC takes it: "rms_norm_fwd<float>" */
  uint32_t grid[3], block[3];
  uint32_t shared_bytes; /* dynamic shared memory */
  const mlg_cuda_argument* arguments;
  uint32_t argument_count;
  const mlg_cuda_constant* constants; /* every constant that the source declares */
  uint32_t constant_count;
  const mlg_emulated_function* emulated;
} mlg_cuda_launch;

typedef struct mlg_cuda_plan {
  const mlg_cuda_launch* launches; /* run in this order; none: nothing to do */
  uint32_t launch_count;
} mlg_cuda_plan;

#ifdef __cplusplus
}
#endif
#endif

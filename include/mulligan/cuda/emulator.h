/* What the emulated device of the cuda backend offers to kernels that were compiled for the CPU
 * (emulation.hpp).
 *
 * One thread of a block runs at a time, each on a stack of its own; the device switches between them at
 * barriers and warp operations. fail() never returns: it reports the sentence and ends the launch. */
#ifndef MULLIGAN_CUDA_EMULATOR_H
#define MULLIGAN_CUDA_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that one pointer argument of a launch may touch. */
typedef struct mlg_emulated_region {
  const char* name; /* of the argument, for messages */
  char* begin;
  char* end;
  unsigned char* known; /* one byte per byte of memory: 1 once it was written */
  int32_t readable, writable;
} mlg_emulated_region;

typedef struct mlg_emulated_dim {
  unsigned x, y, z;
} mlg_emulated_dim;

typedef enum mlg_warp_operation {
  MLG_WARP_SYNC = 0,
  MLG_WARP_SHUFFLE = 1,
  MLG_WARP_VOTE = 2
} mlg_warp_operation;

/* The fields describe the running thread. */
typedef struct mlg_emulator {
  mlg_emulated_dim thread_index, block_index, block_dim, grid_dim;
  unsigned thread, lane, warp; /* thread: linear index in the block */
  uint64_t block_serial;       /* differs between any two blocks that ever ran */
  uint32_t block_epoch;        /* __syncthreads() that the block has passed */
  uint32_t warp_epoch;         /* operations of the whole warp that the thread's warp has passed */
  void (*barrier)(const char* file, int line);
  /* Waits for all lanes in `mask`. SHUFFLE: returns the `value` of lane `source`; VOTE: the mask of the lanes
   * whose value is not 0; SYNC: 0. */
  uint64_t (*warp_operation)(int32_t operation, unsigned mask, unsigned source, uint64_t value,
                             const char* file, int line);
  void (*fail)(const char* what);
} mlg_emulator;

#ifdef __cplusplus
}
#endif
#endif

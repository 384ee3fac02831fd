/* Recording kernel calls. Losses and optimisers do not compute at run time: they record calls once, on values
 * whose shapes are fixed; the host plans the memory, and replays the list every step (on a GPU, as a captured
 * graph). */
#ifndef MULLIGAN_RECORDER_H
#define MULLIGAN_RECORDER_H

#include <mulligan/abi.h>
#include <mulligan/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of the graph being recorded. 0 stands for an absent optional argument. */
typedef uint32_t mlg_value;

/* Valid only during the call it is passed to. All tensor descriptions have null data pointers. */
typedef struct mlg_recorder {
  void* self;
  /* Shape and dtype of a value. */
  mlg_error (*describe)(void* self, mlg_value value, mlg_tensor* out);
  /* A persistent tensor, zero at the start of a run and saved in checkpoints under `name`. */
  mlg_error (*state)(void* self, const char* name, const mlg_tensor* shape, mlg_value* out);
  /* A tensor that lives within one replay of the list; must be written before it is read. */
  mlg_error (*scratch)(void* self, const mlg_tensor* shape, mlg_value* out);
  /* Part of `value` from element `offset` on, seen with another shape (same dtype, inside the value). */
  mlg_error (*view)(void* self, mlg_value value, int64_t offset, const mlg_tensor* shape, mlg_value* out);
  /* Appends a kernel call. Arguments in the order of the kernel's signature; every attribute by name. */
  mlg_error (*launch)(void* self, const char* kernel, const mlg_value* arguments, uint32_t argument_count,
                      const mlg_attribute* attributes, uint32_t attribute_count);
  /* Declares that `state`, which an optimiser made with state(), survives warm-up: a run whose
   * train.warmup.keep_muon_momentum is set leaves it, at the end of the steps before the clock, as they made
   * it; all other tensors return to their initial values. */
  mlg_error (*survives_warmup)(void* self, mlg_value state);
} mlg_recorder;

#ifdef __cplusplus
}
#endif
#endif

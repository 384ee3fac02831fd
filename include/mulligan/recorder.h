/* Recording kernel calls. Losses and optimisers do not compute at run time. They record calls once, on values of fixed
 * shape. The host plans the memory and replays the list every step (on a GPU, as a captured graph). */
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
  /* A persistent tensor, zero at the start of a run and saved in checkpoints under `name`. If survives_warmup and
   * train.warmup.keep_muon_momentum are set, it keeps its value after the steps before the clock; all other tensors return
   * to their initial values. */
  mlg_error (*state)(void* self, const char* name, const mlg_tensor* shape, int32_t survives_warmup,
                     mlg_value* out);
  /* A tensor that lives within one replay of the list. It must be written before it is read. */
  mlg_error (*scratch)(void* self, const mlg_tensor* shape, mlg_value* out);
  /* A view of `value` from element `offset` on with another shape, inside the value and of the same dtype. */
  mlg_error (*view)(void* self, mlg_value value, int64_t offset, const mlg_tensor* shape, mlg_value* out);
  /* Appends a kernel call. Arguments are in the order of the kernel's signature; every attribute is given by name. */
  mlg_error (*launch)(void* self, const char* kernel, const mlg_value* arguments, uint32_t argument_count,
                      const mlg_attribute* attributes, uint32_t attribute_count);
} mlg_recorder;

#ifdef __cplusplus
}
#endif
#endif

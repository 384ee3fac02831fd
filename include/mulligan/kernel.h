/* A kernel: a named device function. Backends have the core set (docs/kernels.md); other plugins add their own. */
#ifndef MULLIGAN_KERNEL_H
#define MULLIGAN_KERNEL_H

#include <mulligan/abi.h>
#include <mulligan/tensor.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a CPU kernel. Everything here is owned by the backend and valid during the call. */
typedef struct mlg_launch {
  /* in the order of the signature; an absent optional argument has dtype MLG_ABSENT */
  const mlg_tensor* arguments;
  uint32_t argument_count;
  const double* attributes; /* in the order of the signature */
  void* workspace;          /* of the size that prepare() asked for, 64-byte aligned, contents undefined */
  void* state;              /* what prepare() returned */
  /* Runs body over [0, count) in pieces of at least `grain`, which may run at once. A kernel's result must not depend on
   * how the range is cut, so reductions use partial sums over fixed pieces. */
  void (*parallel_for)(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
} mlg_launch;

typedef struct mlg_preparation {
  void* state; /* handed back in every launch; freed by release() */
  size_t workspace_bytes;
} mlg_preparation;

/* Strings and functions have static storage. */
typedef struct mlg_kernel {
  const char* name;    /* "softcap_ce_fwd" */
  const char* backend; /* "cpu", "cuda", ... : the backend that can run this implementation */
  /* Arguments, separated by commas, then attributes, separated by spaces: "in logits, in targets, out loss, inout? total;
   * softcap scale". Arguments with `?` may be absent. `out` must not be read; `inout` is read and written. Names are unique; a
   * call gives every attribute. */
  const char* signature;
  /* Checks shapes and dtypes once, before the first launch. May allocate. Its error names the wrong argument. cpu: may be
   * NULL; `shapes` has null data pointers. cuda: the state is an mlg_cuda_plan (cuda_kernel.h); addresses may be known. */
  mlg_error (*prepare)(const mlg_launch* shapes, mlg_preparation* out);
  void (*release)(void* state); /* NULL when there is no state */
  /* cpu: computes. Must neither allocate nor block on anything but parallel_for. */
  mlg_error (*run)(const mlg_launch* launch);
  /* cuda: CUDA C++ source with the functions that the plan names; NULL elsewhere. */
  const char* source;
} mlg_kernel;

#ifdef __cplusplus
}
#endif
#endif

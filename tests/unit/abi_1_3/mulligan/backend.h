/* Backend plugins: where tensors live and kernels run. One instance per process and device. */
#ifndef MULLIGAN_BACKEND_H
#define MULLIGAN_BACKEND_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel call as the host wants it prepared. Data pointers in `arguments` are null. */
typedef struct mlg_call {
  const char* kernel;
  const mlg_tensor* arguments;
  uint32_t argument_count;
  const mlg_attribute* attributes;
  uint32_t attribute_count;
} mlg_call;

typedef struct mlg_device_info {
  const char* description; /* for the log and result.json */
  uint64_t memory_bytes;   /* what the device has; 0: unknown */
  int32_t threads;         /* host threads that kernels use; 0: not applicable */
  int32_t computes;        /* 0: a recording backend (null), whose memory holds no results */
} mlg_device_info;

/* What a backend promises of a run that is repeated on the same machine with the same settings. */
typedef enum mlg_determinism {
  MLG_DETERMINISM_NONE = 0, /* nothing */
  MLG_DETERMINISM_RUN = 1   /* every bit of every result */
} mlg_determinism;

/* All work is enqueued in the order of the calls; only download() and synchronize() wait for it. One thread
 * at a time. */
typedef struct mlg_backend_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  mlg_error (*info)(void* instance, mlg_device_info* out);
  /* Memory, aligned to 256 bytes, zeroed. Never called inside a step. */
  mlg_error (*allocate)(void* instance, size_t bytes, void** address);
  void (*free)(void* instance, void* address);
  /* upload() has read `host` when it returns; download() has written it. */
  mlg_error (*upload)(void* instance, void* device, const void* host, size_t bytes);
  mlg_error (*download)(void* instance, void* host, const void* device, size_t bytes);
  mlg_error (*copy)(void* instance, void* to, const void* from, size_t bytes);
  mlg_error (*zero)(void* instance, void* device, size_t bytes);
  /* Makes kernels of other plugins callable; those for other backends are ignored. A name that exists already
   * is replaced only when `replace` is set, otherwise refused. */
  mlg_error (*add_kernels)(void* instance, const mlg_kernel* kernels, uint32_t count, int32_t replace);
  /* The kernels this instance can run, for listings and coverage: NULL past the end. */
  const mlg_kernel* (*kernel_at)(void* instance, uint32_t index);
  /* prepare: checks a call and makes it ready (creates primitives, compiles); says how much workspace it
   * needs. bind: fixes its addresses (absent arguments: null) and workspace. run: enqueues prepared, bound
   * calls in order. */
  mlg_error (*prepare)(void* instance, const mlg_call* call, void** prepared, size_t* workspace_bytes);
  mlg_error (*bind)(void* instance, void* prepared, void* const* addresses, void* workspace);
  mlg_error (*run)(void* instance, void* const* prepared, uint32_t count);
  void (*release)(void* instance, void* prepared);
  mlg_error (*synchronize)(void* instance);
  /* Since ABI 1.1, may be null (promises nothing): a value of mlg_determinism for this instance, as it is
   * configured and with the kernels that were replaced so far. */
  int32_t (*determinism)(void* instance);
  /* Since ABI 1.3, may be null (takes none): the compiled kernel in the file `path` computes all later calls of the known
   * kernel `name` in the place of its own code, which still checks them. Refuses a file that does not fit the kernel. */
  mlg_error (*replace_kernel)(void* instance, const char* name, const char* path);
} mlg_backend_table;

#ifdef __cplusplus
}
#endif
#endif

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

/* Where the transfers of a communicator stand in the order of the backend's work. */
typedef enum mlg_queue_kind {
  MLG_QUEUE_NONE = -1, /* nowhere, as where the backend has no function queue() */
  MLG_QUEUE_HOST = 0, /* the memory is the host's, and a call that was enqueued is finished when it returns */
  MLG_QUEUE_CUDA = 1  /* `stream` is a CUstream of the CUcontext `context` */
} mlg_queue_kind;

typedef struct mlg_queue {
  int32_t kind; /* mlg_queue_kind */
  void* stream;
  void* context;
} mlg_queue;

/* What one run of a kernel call gives the device to do; for cost estimates. */
typedef struct mlg_work {
  uint32_t launches; /* of kernels that are compiled from source or taken from a file */
  uint32_t
      library_calls; /* matmuls and attentions of a vendor's library, which launches kernels of its own */
  /* Which of its measurements a call takes its algorithm from. A device makes each once, before it first runs
   * such a call. 0: of none. */
  uint32_t measurement;
} mlg_work;

/* What a backend promises of a run that is repeated on the same machine with the same settings. Each promise
 * holds those before it. A backend gives BATCH only where its key `batch_invariant` was set, so no host meets
 * a promise that it does not know. */
typedef enum mlg_determinism {
  MLG_DETERMINISM_NONE = 0, /* nothing */
  MLG_DETERMINISM_RUN = 1,  /* every bit of every result */
  MLG_DETERMINISM_BATCH = 2 /* and a row's bits whatever rows are computed with it */
} mlg_determinism;

#define MLG_MARKS 4 /* slots of mark() */

/* All work is enqueued in the order of the calls; only download(), synchronize() and await() wait for it. One
 * thread at a time. */
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
  /* May be null (promises nothing): a value of mlg_determinism for this instance, as it is
   * configured and with the kernels that were replaced so far. */
  int32_t (*determinism)(void* instance);
  /* May be null (takes none): the compiled kernel in the file `path` computes all later calls of the known
   * kernel `name` in the place of its own code, which still checks them. Refuses a file that does not fit the
   * kernel. */
  mlg_error (*replace_kernel)(void* instance, const char* name, const char* path);
  /* May be null (MLG_QUEUE_NONE): where collectives stand in the order of this backend's work.
   * With NONE its memory is no address for others, and the host moves what a communicator sends by download()
   * and upload(). */
  mlg_error (*queue)(void* instance, mlg_queue* out);
  /* May be null (not known): what the next run of a prepared and bound call would enqueue. */
  mlg_error (*work)(void* instance, void* prepared, mlg_work* out);
  /* May be null (await() then is synchronize()). mark() notes the present place in the order of
   * the work under `slot`, below MLG_MARKS, in place of what was noted there; await() waits until the work up
   * to that place has ended, and for nothing where the slot notes none. No allocation on the step path. */
  mlg_error (*mark)(void* instance, uint32_t slot);
  mlg_error (*await)(void* instance, uint32_t slot);
  /* May be null (it counts nothing): what takes long and was made so far for the calls that were given, such as
   * modules of code, plans of a library or measurements. By index, NULL past the end; a word [a-z_]+ in static storage,
   * the same for the life of the instance. */
  const char* (*made)(void* instance, uint32_t index, uint64_t* count);
} mlg_backend_table;

#ifdef __cplusplus
}
#endif
#endif

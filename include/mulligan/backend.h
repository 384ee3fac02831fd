/* Backend plugins: where tensors live and kernels run. One instance per process and device. */
#ifndef MULLIGAN_BACKEND_H
#define MULLIGAN_BACKEND_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel call to prepare. Data pointers in `arguments` are null. */
typedef struct mlg_call {
  const char* kernel;
  const mlg_tensor* arguments;
  uint32_t argument_count;
  const mlg_attribute* attributes;
  uint32_t attribute_count;
} mlg_call;

typedef struct mlg_device_info {
  const char* description; /* for the log and result.json */
  uint64_t memory_bytes;   /* of the device; 0: unknown */
  int32_t threads;         /* host threads that kernels use; 0: not applicable */
  int32_t computes;        /* 0: a recording backend (null), whose memory holds no results */
} mlg_device_info;

/* The queue in which a communicator enqueues its transfers, so that they are ordered with the backend's work. */
typedef enum mlg_queue_kind {
  MLG_QUEUE_NONE = -1, /* no queue */
  MLG_QUEUE_HOST = 0,  /* the memory is the host's; an enqueued call is finished when it returns */
  MLG_QUEUE_CUDA = 1   /* `stream` is a CUstream of the CUcontext `context` */
} mlg_queue_kind;

typedef struct mlg_queue {
  int32_t kind; /* mlg_queue_kind */
  void* stream;
  void* context;
} mlg_queue;

/* The work that one run of a kernel call gives to the device; for cost estimates. */
typedef struct mlg_work {
  uint32_t launches; /* of kernels that are compiled from source or taken from a file */
  uint32_t
      library_calls; /* matmuls and attentions of a vendor's library, which launches kernels of its own */
  /* The number of the measurement from which the call takes its algorithm; 0: none. The device makes each
   * measurement once, before it first runs such a call. */
  uint32_t measurement;
} mlg_work;

/* What a backend promises for a run that is repeated on the same machine with the same settings. Each promise includes
 * those before it. A backend gives BATCH only if its key `batch_invariant` is set, so an older host never meets a promise
 * that it does not know. */
typedef enum mlg_determinism {
  MLG_DETERMINISM_NONE = 0, /* nothing */
  MLG_DETERMINISM_RUN = 1,  /* every bit of every result */
  MLG_DETERMINISM_BATCH = 2 /* also: a row's bits do not depend on the rows that are computed with it */
} mlg_determinism;

#define MLG_MARKS 4 /* slots of mark() */

/* All work is enqueued in the order of the calls. Only download(), synchronize() and await() wait for it. The functions
 * are called from one thread at a time. */
typedef struct mlg_backend_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  mlg_error (*info)(void* instance, mlg_device_info* out);
  /* Allocates zeroed memory, aligned to 256 bytes. Never called inside a step. */
  mlg_error (*allocate)(void* instance, size_t bytes, void** address);
  void (*free)(void* instance, void* address);
  /* When upload() returns it has read `host`; when download() returns it has written it. */
  mlg_error (*upload)(void* instance, void* device, const void* host, size_t bytes);
  mlg_error (*download)(void* instance, void* host, const void* device, size_t bytes);
  mlg_error (*copy)(void* instance, void* to, const void* from, size_t bytes);
  mlg_error (*zero)(void* instance, void* device, size_t bytes);
  /* Makes kernels of other plugins callable, and ignores those for other backends. If a name exists already, the kernel is
   * replaced if `replace` is set, and refused otherwise. */
  mlg_error (*add_kernels)(void* instance, const mlg_kernel* kernels, uint32_t count, int32_t replace);
  /* The kernels that this instance can run, for listings and coverage; NULL past the end. */
  const mlg_kernel* (*kernel_at)(void* instance, uint32_t index);
  /* prepare: checks a call, makes it ready (creates primitives, compiles) and returns the size of its workspace.
   * bind: fixes its addresses (absent arguments: null) and workspace. run: enqueues prepared, bound calls in order. */
  mlg_error (*prepare)(void* instance, const mlg_call* call, void** prepared, size_t* workspace_bytes);
  mlg_error (*bind)(void* instance, void* prepared, void* const* addresses, void* workspace);
  mlg_error (*run)(void* instance, void* const* prepared, uint32_t count);
  void (*release)(void* instance, void* prepared);
  mlg_error (*synchronize)(void* instance);
  /* Returns a value of mlg_determinism for this instance, with its configuration and the kernels that have been replaced so
   * far. */
  int32_t (*determinism)(void* instance);
  /* The compiled kernel in the file `path` computes all later calls of the known kernel `name`. The kernel's own code still
   * checks the calls. A file that does not fit the kernel is refused. */
  mlg_error (*replace_kernel)(void* instance, const char* name, const char* path);
  /* Gives the queue for collectives. With MLG_QUEUE_NONE, other libraries cannot use the backend's addresses, and the host
   * moves a communicator's data by download() and upload(). */
  mlg_error (*queue)(void* instance, mlg_queue* out);
  /* Gives the work that the next run of a prepared and bound call would enqueue. Fails if that is not known. */
  mlg_error (*work)(void* instance, void* prepared, mlg_work* out);
  /* mark() stores the present place in the order of the work under `slot`, below MLG_MARKS, and replaces an earlier mark.
   * await() waits until the work up to that mark has ended; if the slot has no mark, it does not wait. A backend without
   * marks waits for all work. Neither allocates. */
  mlg_error (*mark)(void* instance, uint32_t slot);
  mlg_error (*await)(void* instance, uint32_t slot);
  /* Counts slow preparations that have been made so far, such as modules of code, plans of a library or measurements. Read
   * by index; NULL past the end. The name is a word [a-z_]+ in static storage and stays the same for the life of the
   * instance. */
  const char* (*made)(void* instance, uint32_t index, uint64_t* count);
} mlg_backend_table;

#ifdef __cplusplus
}
#endif
#endif

/* Communicator plugins: collectives between the ranks of a run. The host decides what is sent and when; the plugin moves
 * the data. */
#ifndef MULLIGAN_COMMUNICATOR_H
#define MULLIGAN_COMMUNICATOR_H

#include <mulligan/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of a run, and small messages between them for setup. The host owns it; it is valid while the communicator
 * lives. */
typedef struct mlg_group {
  int32_t rank, size;             /* of all ranks */
  int32_t local_rank, local_size; /* of those on this machine */
  const char* interface_name;     /* network interface or address to listen at; "": the plugin chooses */
  void* self;
  /* May be called from any thread. put: one rank puts `key` once. get: waits for the key, writes min(*bytes, its size)
   * bytes and then its size into *bytes. get fails after `seconds`, and as soon as the run has failed on another rank. */
  mlg_error (*put)(void* self, const char* key, const void* value, size_t bytes);
  mlg_error (*get)(void* self, const char* key, void* value, size_t* bytes, double seconds);
} mlg_group;

typedef enum mlg_collective_kind {
  MLG_ALL_REDUCE = 0, /* to[count] = the sum over ranks of from[count] */
  MLG_REDUCE_SCATTER =
      1, /* to[count] = the sum over ranks of from[rank * count .. + count]; from[size * count] */
  MLG_ALL_GATHER = 2, /* to[size * count] = every rank's from[count], in rank order */
  MLG_ALL_TO_ALL =
      3, /* to[r * count .. + count] = rank r's from[rank * count .. + count]; both [size * count] */
  MLG_BROADCAST = 4, /* to[count] = rank root's from[count] */
  /* Rank root's to[count] = the sum over ranks of from[count]. On other ranks `to` is undefined if `to` is `from`, and
   * unchanged otherwise. */
  MLG_REDUCE = 5
} mlg_collective_kind;

/* One collective. Every rank submits the same ones in the same order. Some may be in place: `to` is `from` (all_reduce,
 * broadcast, reduce); `from` is its own place in `to`, rank * count elements from its start (all_gather); or `to` is its
 * own place in `from` (reduce_scatter). Otherwise the two do not overlap. Reductions take f32, f64 and bf16 and add in any
 * order; the others move any dtype. */
typedef struct mlg_collective {
  int32_t kind;  /* mlg_collective_kind */
  int32_t dtype; /* mlg_dtype */
  int32_t root;  /* broadcast, reduce: the rank that sends or receives */
  const void* from;
  void* to;
  int64_t count; /* elements */
} mlg_collective;

/* One thread at a time calls these functions, except poll() and abort(). After a failure every call fails, except
 * destroy() and release(), which still work and wait for no peer. */
typedef struct mlg_communicator_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Connects with the other ranks, which call it, too. Called before every function below. Fails with a sentence after
   * `seconds`, and if the plugin does not know the kind of the queue. */
  mlg_error (*open)(void* instance, const mlg_group* group, const mlg_queue* queue, double seconds);
  /* Makes ready `count` collectives that are submitted together. All allocation is here. */
  mlg_error (*prepare)(void* instance, const mlg_collective* list, uint32_t count, void** prepared);
  /* Starts them after all work that the backend has been given so far, and does not wait. Tickets grow by one. The host
   * joins a submission before it submits the same collectives again. */
  mlg_error (*submit)(void* instance, void* prepared, uint64_t* ticket);
  /* All work that the backend is given from now on sees the results of `ticket` (host queues: waits for it). Fails with a
   * sentence if that collective or an earlier one failed. */
  mlg_error (*join)(void* instance, uint64_t ticket);
  /* Any thread. Gives the number of finished tickets (1 after the first), and the number of those that the backend's work has
   * reached, or UINT64_MAX (all that were submitted). The second separates a rank whose own device hangs before a transfer
   * from the ranks that wait in it. Reports a failure of the communicator. */
  mlg_error (*poll)(void* instance, uint64_t* completed, uint64_t* begun);
  /* Any thread. Pending and later calls fail soon, also if peers are gone or do not answer. */
  void (*abort)(void* instance);
  void (*release)(void* instance, void* prepared);
} mlg_communicator_table;

#ifdef __cplusplus
}
#endif
#endif

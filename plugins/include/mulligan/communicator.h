/* Communicator plugins: collectives between the ranks of a run. The host decides what is sent when; a plugin
 * moves it. */
#ifndef MULLIGAN_COMMUNICATOR_H
#define MULLIGAN_COMMUNICATOR_H

#include <mulligan/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of a run, and small messages between them for setting up: the host's, valid while the
 * communicator lives. */
typedef struct mlg_group {
  int32_t rank, size;             /* of all ranks */
  int32_t local_rank, local_size; /* of those on this machine */
  const char* interface_name; /* network interface, or an address, to listen at; "" lets the plugin choose */
  void* self;
  /* Any thread. put: `key` is put once by one rank. get: waits for it; writes min(*bytes, its size) bytes and
   * then its size into *bytes; fails after `seconds`, and as soon as the run has failed elsewhere. */
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
  /* Rank root's to[count] = the sum over ranks of from[count]; what the others have in `to` is
   * undefined where `to` is `from`, and untouched otherwise. */
  MLG_REDUCE = 5
} mlg_collective_kind;

/* One collective; every rank submits the same ones in the same order. In place, `to` is `from` (all_reduce,
 * broadcast, reduce), `from` is its own place in `to`, rank * count elements from its start (all_gather), or `to` is
 * its own place in `from` (reduce_scatter); otherwise the two do not overlap. Reductions are of f32, f64 and
 * bf16, in any order; the others move any dtype. */
typedef struct mlg_collective {
  int32_t kind;  /* mlg_collective_kind */
  int32_t dtype; /* mlg_dtype */
  int32_t root;  /* broadcast: the rank that has it */
  const void* from;
  void* to;
  int64_t count; /* elements */
} mlg_collective;

/* One thread at a time, but for poll() and abort(). After a failure the instance only fails; destroy() and
 * release() work still, and wait for no peer. */
typedef struct mlg_communicator_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Meets the other ranks, which call it, too; fails after `seconds` with a sentence. Before every function
   * below. A queue of a kind that the plugin does not know is refused with a sentence. */
  mlg_error (*open)(void* instance, const mlg_group* group, const mlg_queue* queue, double seconds);
  /* Makes `count` collectives ready, which are submitted together; all allocation is here. */
  mlg_error (*prepare)(void* instance, const mlg_collective* list, uint32_t count, void** prepared);
  /* Starts them after all work that the backend has been given so far. Does not wait for them. Tickets grow
   * by one. What was submitted is joined before it is submitted again. */
  mlg_error (*submit)(void* instance, void* prepared, uint64_t* ticket);
  /* Work that the backend is given from now on sees the results of `ticket` (host queues: waits for it).
   * Fails with a sentence when that, or a collective before it, failed. */
  mlg_error (*join)(void* instance, uint64_t ticket);
  /* Any thread: how many tickets are finished (1 after the first). Reports a failure of the communicator. */
  mlg_error (*poll)(void* instance, uint64_t* completed);
  /* Any thread: pending and later calls fail soon, also where peers are gone or do not answer. */
  void (*abort)(void* instance);
  void (*release)(void* instance, void* prepared);
  /* May be null, or give UINT64_MAX (as many as were submitted). Any thread: how many tickets the backend's
   * work has come to. By it a rank whose own device stands still before a transfer is told from those that
   * wait for it in that transfer. */
  mlg_error (*begun)(void* instance, uint64_t* begun);
} mlg_communicator_table;

#ifdef __cplusplus
}
#endif
#endif

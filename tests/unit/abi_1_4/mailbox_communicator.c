/* A communicator of any number of ranks whose transfers go through the messages of the group: every rank puts
 * what it has, gets what the others have, and is done when submit() returns. What has begun it does
 * not say. */
#include <mulligan/communicator.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "mailbox_communicator"
_Static_assert(MLG_ABI_MINOR == 4, "these are the headers of ABI 1.4");
_Static_assert(sizeof(mlg_group) == 56, "as released");
_Static_assert(sizeof(mlg_queue) == 24, "as released");
_Static_assert(sizeof(mlg_collective) == 40, "as released");
_Static_assert(sizeof(mlg_communicator_table) == 152, "as released");

typedef struct mailbox {
  const mlg_group* group;
  double seconds;
  uint64_t messages; /* put so far by each rank */
  _Atomic uint64_t completed;
  atomic_int failed; /* or aborted */
} mailbox;
typedef struct batch {
  char* memory; /* room for a message and a result of its largest collective */
  uint32_t count;
  mlg_collective list[];
} batch;

static mlg_error create(const mlg_host* host, const mlg_config* config, void** instance) {
  (void)host;
  (void)config;
  *instance = calloc(1, sizeof(mailbox));
  return *instance ? NULL : "out of memory";
}
static void destroy(void* instance) {
  free(instance);
}
static mlg_error open_mailbox(void* instance, const mlg_group* group, const mlg_queue* queue,
                              double seconds) {
  mailbox* box = instance;
  if (queue->kind != MLG_QUEUE_HOST) return "'" NAME "' moves memory of the host";
  box->group = group;
  box->seconds = seconds;
  return NULL;
}
static size_t width(int32_t dtype) {
  switch (dtype) {
    case MLG_F64:
    case MLG_I64:
      return 8;
    case MLG_F32:
    case MLG_I32:
      return 4;
    case MLG_BF16:
    case MLG_F16:
    case MLG_U16:
      return 2;
    default:
      return 1;
  }
}

static void release(void* instance, void* prepared) {
  (void)instance;
  batch* made = prepared;
  free(made->memory);
  free(made);
}
static mlg_error prepare(void* instance, const mlg_collective* list, uint32_t count, void** prepared) {
  const mailbox* box = instance;
  batch* made = malloc(sizeof *made + count * sizeof *list);
  if (!made) return "out of memory";
  size_t room = 1;
  made->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t bytes = 2 * (size_t)list[i].count * width(list[i].dtype) * (size_t)box->group->size;
    made->list[i] = list[i];
    if (bytes > room) room = bytes;
  }
  made->memory = malloc(room);
  if (!made->memory) {
    free(made);
    return "out of memory";
  }
  *prepared = made;
  return NULL;
}

static float of_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}
/* To nearest, halves to even; finite values. */
static uint16_t to_bf16(float value) {
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  return (uint16_t)((wide + 0x7FFFu + (wide >> 16 & 1u)) >> 16);
}
/* to[i] += from[i] */
static void add(int32_t dtype, void* to, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == MLG_F32) ((float*)to)[i] += ((const float*)from)[i];
    if (dtype == MLG_F64) ((double*)to)[i] += ((const double*)from)[i];
    if (dtype == MLG_BF16) {
      uint16_t* sum = (uint16_t*)to + i;
      *sum = to_bf16(of_bf16(*sum) + of_bf16(((const uint16_t*)from)[i]));
    }
  }
}

/* The message of rank `from`, which has that many bytes. */
static mlg_error get(mailbox* box, int from, void* value, size_t bytes) {
  char key[64];
  snprintf(key, sizeof key, "%llu.%d", (unsigned long long)box->messages, from);
  size_t found = bytes;
  const mlg_error error = box->group->get(box->group->self, key, value, &found, box->seconds);
  if (error) return error;
  return found == bytes ? NULL : "a message has another length than this rank's";
}
/* Puts this rank's elements and makes `to` of everybody's. `memory` has room for a message and a result. */
static mlg_error exchange(mailbox* box, const mlg_collective* one, char* memory) {
  const int rank = box->group->rank, size = box->group->size;
  const size_t share = (size_t)one->count * width(one->dtype);
  const int cut = one->kind == MLG_REDUCE_SCATTER || one->kind == MLG_ALL_TO_ALL;
  const int sums = one->kind == MLG_ALL_REDUCE || one->kind == MLG_REDUCE_SCATTER;
  const size_t bytes = cut ? share * (size_t)size : share;
  char *message = memory, *result = memory + bytes;
  char key[64];
  snprintf(key, sizeof key, "%llu.%d", (unsigned long long)box->messages, rank);
  if (one->kind != MLG_BROADCAST || one->root == rank) {
    const mlg_error error = box->group->put(box->group->self, key, one->from, bytes);
    if (error) return error;
  }
  if (one->kind == MLG_BROADCAST) return get(box, one->root, one->to, bytes);
  for (int other = 0; other < size; ++other) {
    const mlg_error error = get(box, other, message, bytes);
    if (error) return error;
    const char* part = cut ? message + (size_t)rank * share : message;
    if (sums && other > 0) {
      add(one->dtype, result, part, one->count);
    } else {
      memcpy(sums ? result : result + (size_t)other * share, part, share);
    }
  }
  memcpy(one->to, result, sums ? share : share * (size_t)size);
  return NULL;
}

static mlg_error submit(void* instance, void* prepared, uint64_t* ticket) {
  mailbox* box = instance;
  const batch* all = prepared;
  if (box->failed) return "the communicator has failed or was aborted";
  for (uint32_t i = 0; i < all->count; ++i) {
    const mlg_collective* one = &all->list[i];
    if (one->count == 0) continue;
    const mlg_error error = exchange(box, one, all->memory);
    ++box->messages;
    if (error) box->failed = 1;
    if (error) return error;
  }
  *ticket = ++box->completed;
  return NULL;
}
static mlg_error join(void* instance, uint64_t ticket) {
  (void)ticket;
  return ((mailbox*)instance)->failed ? "the communicator has failed or was aborted" : NULL;
}
static mlg_error poll(void* instance, uint64_t* completed) {
  mailbox* box = instance;
  *completed = box->completed;
  return box->failed ? "the communicator has failed or was aborted" : NULL;
}
static void abort_mailbox(void* instance) {
  ((mailbox*)instance)->failed = 1;
}

static const mlg_communicator_table table = {
    {MLG_ABI_MAGIC, MLG_ABI_MAJOR, MLG_ABI_MINOR, sizeof(mlg_communicator_table), MLG_COMMUNICATOR, NAME,
     "1.4", "of ABI 1.4", 0, 0, NULL, 0, NULL},
    create,
    destroy,
    open_mailbox,
    prepare,
    submit,
    join,
    poll,
    abort_mailbox,
    release,
    NULL};

__attribute__((visibility("default"))) const char mlg_abi_1_communicator_mailbox_communicator = 0;
__attribute__((visibility("default"))) const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}

/* The exports of a plugin library of any kind. Only C types cross this boundary: no exceptions, no STL, no RTTI.
 *
 * A plugin library is a file mulligan_NAME.so that exports one symbol, the function
 *   const mlg_plugin_header* mlg_plugin(void)
 * The returned table starts with mlg_plugin_header. The members of the plugin's kind follow (optimizer.h, loss.h, ...).
 *
 * Within one ABI major, tables and structs that only the host makes grow at their end, and each growth raises the minor.
 * The host refuses another major and a minor that is newer than its own. If the minor is older, the host reads the first
 * struct_size bytes of the table. Libraries are never unloaded. Authors use the C++ wrapper (optimizer.hpp, loss.hpp,
 * ...), which fills in the table.
 */
#ifndef MULLIGAN_ABI_H
#define MULLIGAN_ABI_H

#include <stdint.h>

#define MLG_ABI_MAGIC 0x4E474C4Du /* "MLGN" in little-endian bytes */
#define MLG_ABI_MAJOR 1
#define MLG_ABI_MINOR 0

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: success. Otherwise one sentence for the user (what, where, how to fix it). The callee owns the text and keeps it
 * valid until its next call on the same thread. */
typedef const char* mlg_error;

typedef enum mlg_kind {
  MLG_BACKEND = 1,
  MLG_LOSS = 2,
  MLG_OPTIMIZER = 3,
  MLG_SCHEDULE = 4,
  MLG_TTT = 5,
  MLG_QUANTIZER = 6,
  MLG_COMMUNICATOR = 7,
  MLG_TRANSFORM = 8,
  MLG_ENSEMBLE = 9,
  MLG_WRAPPER = 10
} mlg_kind;

struct mlg_key;    /* config.h: one configuration key */
struct mlg_kernel; /* kernel.h: one device function */

typedef struct mlg_plugin_header {
  uint32_t magic;         /* MLG_ABI_MAGIC */
  uint16_t abi_major;     /* must equal the host's */
  uint16_t abi_minor;     /* at most the host's */
  uint32_t struct_size;   /* of the whole table */
  uint32_t kind;          /* mlg_kind */
  const char* name;       /* [a-z0-9_]+, unique per kind within a process */
  const char* summary;    /* one line for `mulligan plugins` */
  uint32_t state_version; /* of its state in checkpoints; the host refuses to resume with another one */
  uint32_t key_count;
  const struct mlg_key* keys; /* its TOML keys; static storage */
  uint32_t kernel_count;
  const struct mlg_kernel* kernels; /* its device functions; static storage */
} mlg_plugin_header;

typedef const mlg_plugin_header* (*mlg_plugin_function)(void);

/* What a backend is running. The backend notes it for the host's messages about failures and for `plugins check`. */
typedef struct mlg_running {
  const char* kernel; /* its name, static storage; null between calls. A failed call keeps it */
  uint32_t call;      /* its place in the list that run() was given, from 0 */
} mlg_running;

/* The host's services for every plugin. Valid for the life of the process; may be called from any thread. */
typedef struct mlg_host {
  void (*log)(int32_t level, const char* message); /* 0 debug, 1 info, 2 warning */
  /* for backends whose kernels run in this process; written from the thread that calls run() */
  mlg_running* running;
} mlg_host;

#ifdef __cplusplus
}
#endif
#endif

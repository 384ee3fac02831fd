/* Ensemble plugins: several models made of one by changing its weights, without training.
 *
 * The host owns the scores: it makes one member after another in the place of the model, so that one is in
 * memory at a time, scores each over the same tokens and averages their *probabilities*. A plugin sees no
 * token and no score; it only writes weights. */
#ifndef MULLIGAN_ENSEMBLE_H
#define MULLIGAN_ENSEMBLE_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In place of a member's number: the one model that the ensemble is held against, made of the same centre
 * without chance (of stochastic rounding: rounding to nearest). */
#define MLG_ENSEMBLE_REFERENCE (-1)

/* One weight of the centre model. Memory is the host's, row-major, valid during the call. */
typedef struct mlg_ensemble_weight {
  const char* name;    /* "blocks.3.attn.c_q.weight", "qo_bank" */
  const float* centre; /* [rows, columns], finite: a row is an output channel, of a bank one after another */
  int64_t rows, columns; /* at least 1 */
  int64_t tensor;        /* its number among the weights that members change, from 0 */
  uint64_t seed;         /* of the ensemble */
  int64_t member;        /* 0, 1, ..., or MLG_ENSEMBLE_REFERENCE */
  /* Runs body over [0, count) in pieces of at least `grain`, which may run at once; returns when all are
   * done. To be called from the thread that called make(). `body` must not let an exception out. */
  void (*parallel_for)(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
} mlg_ensemble_weight;

typedef struct mlg_ensemble_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Writes all of out [rows, columns], finite. A pure function of the weight and the configuration: the same
   * bits in every call, whatever was made before and however parallel_for cuts. May allocate. One call at a
   * time. */
  mlg_error (*make)(void* instance, const mlg_ensemble_weight* weight, float* out);
  /* In how many bytes one member's weight [rows, columns] could be stored, scales included. Pure. */
  mlg_error (*stored_bytes)(void* instance, int64_t rows, int64_t columns, double* bytes);
} mlg_ensemble_table;

#ifdef __cplusplus
}
#endif
#endif

/* Ensemble plugins make several models of one by changing its weights, without training.
 *
 * The host owns the scores. It puts one member after another in the place of the model, so that memory holds one at a time.
 * It scores each member over the same tokens and averages their *probabilities*. A plugin sees no token and no score; it
 * only writes weights. */
#ifndef MULLIGAN_ENSEMBLE_H
#define MULLIGAN_ENSEMBLE_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the place of a member's number and means the reference model. It is made of the same centre without chance (for
 * stochastic rounding: by rounding to nearest). */
#define MLG_ENSEMBLE_REFERENCE (-1)

/* One weight of the centre model. Memory is the host's, row-major, valid during the call. */
typedef struct mlg_ensemble_weight {
  const char* name; /* "blocks.3.attn.c_q.weight", "qo_bank" */
  const float*
      centre; /* [rows, columns], finite; a row is an output channel; matrices of a bank follow one another */
  int64_t rows, columns; /* at least 1 */
  int64_t tensor;        /* its number among the weights that members change, from 0 */
  uint64_t seed;         /* of the ensemble */
  int64_t member;        /* 0, 1, ..., or MLG_ENSEMBLE_REFERENCE */
  /* Runs body over [0, count) in pieces of at least `grain`, which may run at once, and returns when all are done. Only the
   * thread that called make() may call it. `body` must not throw. */
  void (*parallel_for)(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
} mlg_ensemble_weight;

typedef struct mlg_ensemble_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Writes all of out [rows, columns] with finite values. A pure function of the weight and the configuration: its bits
   * depend neither on earlier calls nor on how parallel_for cuts. May allocate. One call at a time. */
  mlg_error (*make)(void* instance, const mlg_ensemble_weight* weight, float* out);
  /* The bytes that one member's weight [rows, columns] would need in a file, scales included. Pure. */
  mlg_error (*stored_bytes)(void* instance, int64_t rows, int64_t columns, double* bytes);
} mlg_ensemble_table;

#ifdef __cplusplus
}
#endif
#endif

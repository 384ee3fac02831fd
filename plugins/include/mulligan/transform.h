/* Score transforms: what changes the model's distribution of a token before the token is scored, apart from
 * the loss that is trained on.
 *
 * The host owns the order: propose -> score -> observe. A transform proposes for the coming token before it
 * is told that token, so it cannot read what is to be scored. A proposal adds biases to the logits of single
 * tokens, and the host makes the whole softmax anew, so probabilities sum to one whatever is proposed:
 *   loss' = loss - bias of the target + log(1 + sum over proposed tokens of p (e^bias - 1)).
 * The gradients of test-time training are those of the untransformed loss. */
#ifndef MULLIGAN_TRANSFORM_H
#define MULLIGAN_TRANSFORM_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLG_TRANSFORM_BIASES 4

typedef struct mlg_bias {
  int32_t token; /* in [0, vocabulary) */
  double bias;   /* nats on its logit, finite */
} mlg_bias;

/* What a stream will be told. */
typedef struct mlg_transform_text {
  int64_t vocabulary; /* tokens are in [0, vocabulary) */
  int64_t tokens;     /* that it will observe, at most: a measure for tables */
  int64_t places;     /* documents that are open side by side; 1: one text */
} mlg_transform_text;

typedef struct mlg_transform_table {
  mlg_plugin_header header;
  /* A proposal has at most so many biases, 1 to MLG_TRANSFORM_BIASES: each costs a pass over the logits. */
  int32_t biases;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* A stream begins without knowledge: of earlier streams and of others nothing reaches it (the host probes
   * that). Streams may be used from different threads, each from one at a time. May allocate at any time. */
  mlg_error (*open)(void* instance, const mlg_transform_text* text, void** stream);
  void (*close)(void* instance, void* stream);
  /* A document begins at `place` with `token` (its BOS), which is given and not scored; what the place held
   * is over, what was learnt from it stays. Never called of a text that runs on over its documents. */
  mlg_error (*begin)(void* instance, void* stream, int64_t place, int32_t token);
  /* Writes the proposal for the coming token of `place`: different tokens; count 0: scored as it is. Pure. */
  mlg_error (*propose)(void* instance, void* stream, int64_t place, mlg_bias out[MLG_TRANSFORM_BIASES],
                       uint32_t* count);
  /* The token of `place` that was proposed for: from now on it may be learnt from. */
  mlg_error (*observe)(void* instance, void* stream, int64_t place, int32_t token);
} mlg_transform_table;

#ifdef __cplusplus
}
#endif
#endif

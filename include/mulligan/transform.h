/* Score transforms change the model's distribution of a token before the token is scored. The loss that is trained on is
 * separate.
 *
 * The host owns the order: propose -> score -> observe. A transform proposes for the next token before it is told that
 * token, so it cannot read what is to be scored. A proposal adds biases to the logits of single tokens, and the host
 * renormalises the softmax. So probabilities sum to one for any proposal:
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

/* Facts about the text that a stream will be given. */
typedef struct mlg_transform_text {
  int64_t vocabulary; /* tokens are in [0, vocabulary) */
  int64_t tokens;     /* most tokens that it will observe; for the size of tables */
  int64_t places;     /* documents that are open at once; 1: one text */
} mlg_transform_text;

typedef struct mlg_transform_table {
  mlg_plugin_header header;
  /* Most biases of a proposal, 1 to MLG_TRANSFORM_BIASES. Each costs a pass over the logits. */
  int32_t biases;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* A new stream knows nothing of earlier or other streams; the host checks this. Different threads may use different
   * streams; one thread at a time uses a stream. May allocate at any time. */
  mlg_error (*open)(void* instance, const mlg_transform_text* text, void** stream);
  void (*close)(void* instance, void* stream);
  /* A document begins at `place` with `token` (its BOS), which is given and not scored. The former document of the place
   * has ended; what was learnt from it stays. Never called for a text without document boundaries. */
  mlg_error (*begin)(void* instance, void* stream, int64_t place, int32_t token);
  /* Writes the proposal for the next token of `place`. Its tokens differ; count 0 means no change. Pure. */
  mlg_error (*propose)(void* instance, void* stream, int64_t place, mlg_bias out[MLG_TRANSFORM_BIASES],
                       uint32_t* count);
  /* Reveals the token of `place` that the proposal was for. The stream may learn from it. */
  mlg_error (*observe)(void* instance, void* stream, int64_t place, int32_t token);
} mlg_transform_table;

#ifdef __cplusplus
}
#endif
#endif

/* Test-time-training plugins: what adapts while the validation set is scored.
 *
 * The host owns the order: score -> book -> reveal -> update. A plugin never sees a token. Before anything is
 * scored it records how its adapters act in the forward pass and how gradients reach them. After a chunk is
 * booked it chooses, from booked losses alone, how its adapters learn from it (plan). The host puts a weight on
 * a token's loss only after that token was scored and booked. */
#ifndef MULLIGAN_TTT_H
#define MULLIGAN_TTT_H

#include <mulligan/config.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLG_TAP_ADAPTERS 4

/* A linear layer of the forward pass, over the windows of a batch of documents. */
typedef struct mlg_tap {
  const char* kind;    /* "q", "k", "v", "attention_output", "mlp_up", "mlp_down", "head" */
  int32_t slot, layer; /* execution slot in the layer order, and physical layer, from 0; -1 for the head */
  int64_t documents;   /* B: adapters are per document */
  /* R: tokens of each document's window; after the last block's attention, and of the head, those of them alone that are
   * scored, where they are fewer */
  int64_t tokens;
  int64_t inputs, outputs; /* features of block_input and output */
} mlg_tap;

typedef enum mlg_adapter_start { MLG_START_ZERO = 0, MLG_START_UNIFORM = 1 } mlg_adapter_start;

/* A trainable f32 tensor of one tap, updated by the run's [ttt.optimizer]. */
typedef struct mlg_adapter {
  const char* name; /* unique within the tap, for example "A"; static storage */
  mlg_tensor shape; /* f32 [documents, ...] */
  int32_t start;    /* mlg_adapter_start: first value zeros, or drawn by the host, uniform in +-bound */
  double bound;
} mlg_adapter;

/* Values a tap's recording works on. Launches may use these and what the plugin itself made, nothing else. */
typedef struct mlg_tap_forward {
  mlg_value block_input; /* [B*R, inputs], compute dtype: what adapters read */
  mlg_value output; /* [B*R, outputs], compute dtype: the layer's result, to which adapters add in place */
  mlg_value adapters[MLG_TAP_ADAPTERS]; /* as declared, in the compute dtype */
  mlg_value saved[MLG_TAP_ADAPTERS];    /* left by the forward recording for the backward one; unused: 0 */
} mlg_tap_forward;

typedef struct mlg_tap_backward {
  mlg_tap_forward forward; /* as forward left it */
  /* [B*R, outputs], compute dtype: with respect to the output as the adapters left it. The host goes on with
   * what is here afterwards as the gradient of the layer's own result: adapters that only add leave it alone;
   * one that changes the output otherwise (a factor) writes it in place, after its last use of the old one.
   */
  mlg_value output_gradient;
  mlg_value gradients[MLG_TAP_ADAPTERS]; /* of the adapters, f32: to be written */
  /* [B*R, inputs], compute dtype; 0: nobody needs it. Adapters that read no block_input leave it alone:
   * the host then clears it where accumulate is 0 */
  mlg_value input_gradient;
  double accumulate; /* 1: add to input_gradient, 0: write all of it */
} mlg_tap_backward;

/* A document of a batch. */
typedef struct mlg_ttt_document {
  const double* losses; /* [chunks]: booked mean loss of each of its chunks so far, nats per token */
  int64_t chunks;
  int32_t more; /* 1: it has a later chunk; else what is learned from it now reaches none of its scores */
} mlg_ttt_document;

/* An adapter of one tap. */
typedef struct mlg_ttt_tensor {
  const char* kind; /* of the tap */
  const char* name; /* as declared */
  int32_t slot;     /* of the tap */
  int32_t start;    /* mlg_adapter_start */
} mlg_ttt_tensor;

/* What is known when the rule chooses: a chunk of a batch is booked and not yet revealed. Or chunk is -1: a
 * batch of the usual number of documents is about to begin; then documents is 0, and tensors has all adapters. */
typedef struct mlg_ttt_chunk {
  int64_t batch;         /* position in the order of scoring, from 0 */
  int64_t chunk, chunks; /* this one, from 0, and how many the batch has */
  int64_t updates;       /* gradient steps since the optimiser's state was last empty */
  int64_t documents;
  const mlg_ttt_document* document; /* [documents], in the order of the batch */
  const mlg_ttt_tensor* tensors;    /* [tensor_count] */
  int64_t tensor_count;
} mlg_ttt_chunk;

/* What the rule chooses. The host presets it; plan() changes what it wants otherwise. */
typedef struct mlg_ttt_step {
  int64_t gradient_steps; /* on this chunk, 0 to 1000; preset: 1 */
  double lr_factor;       /* times the learning rate of [ttt.optimizer], not negative; preset: 1 */
  double*
      weights; /* [documents]: factor of each document's mean loss in the objective, not negative; preset: 1 */
  /* [tensor_count]: how much of its adapters the batch inherits from the batch before it. 1: all, 0: first
   * values anew, between: first values + keep * (values - first values); preset: 0 */
  double* keep;
  int32_t keep_state; /* 1: the batch inherits the optimiser's state; preset: 0 */
} mlg_ttt_step;

/* A pass over documents scored so far that trains the whole model with SGD, between two batches. */
typedef struct mlg_base_update {
  int64_t chunk_tokens;       /* tokens trained on at one learning rate; the last chunk is never trained */
  int64_t batch_rows;         /* rows of the evaluation's sequence length in one step, at most */
  int64_t epochs;             /* passes over each chunk */
  int32_t respect_documents;  /* 1: attention stays inside documents; 0: rows are plain causal */
  double momentum, clip_norm; /* clip_norm 0: no clipping */
} mlg_base_update;

typedef struct mlg_ttt_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Adapters; all three null when the plugin has none. Fills `out`, sets `count` to 0 for a tap without
   * adapters. */
  mlg_error (*declare)(void* instance, const mlg_tap* tap, mlg_adapter out[MLG_TAP_ADAPTERS],
                       uint32_t* count);
  mlg_error (*record_forward)(void* instance, const mlg_recorder*, const mlg_tap*, mlg_tap_forward*);
  mlg_error (*record_backward)(void* instance, const mlg_recorder*, const mlg_tap*, const mlg_tap_backward*);
  /* Called for each batch that can inherit adapters, before the run, and after each chunk that is booked and
   * whose batch has a later one. Fills the members of `out` that belong to the call: keep and keep_state, or the
   * others. A pure function of its arguments: a continued run and other ranks must get the same answers. No
   * allocation, no waiting. Null: the presets. */
  mlg_error (*plan)(void* instance, const mlg_ttt_chunk* booked, mlg_ttt_step* out);
  /* Base-model updates; both null when the plugin has none. base_rate: learning rate of chunk `index` of
   * `count`. */
  mlg_error (*base_update)(void* instance, mlg_base_update* out);
  mlg_error (*base_rate)(void* instance, int64_t index, int64_t count, double* lr);
} mlg_ttt_table;

#ifdef __cplusplus
}
#endif
#endif

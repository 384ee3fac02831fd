/* Test-time-training plugins adapt a model while the validation set is scored.
 *
 * The host owns the order: score -> book -> reveal -> update. A plugin never sees a token. Before scoring begins, the
 * plugin records how its adapters act in the forward pass and how gradients reach them. After a chunk is booked, plan()
 * chooses from booked losses alone how the adapters learn from it. A token's loss gets a weight only after the token was
 * scored and booked. */
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
  /* R: tokens of each document's window. After the last block's attention and for the head, only the scored tokens count
   * if they are fewer. */
  int64_t tokens;
  int64_t inputs, outputs; /* features of block_input and output */
} mlg_tap;

typedef enum mlg_adapter_start { MLG_START_ZERO = 0, MLG_START_UNIFORM = 1 } mlg_adapter_start;

/* A trainable f32 tensor of one tap, updated by the run's [ttt.optimizer]. */
typedef struct mlg_adapter {
  const char* name; /* unique within the tap, for example "A"; static storage */
  mlg_tensor shape; /* f32 [documents, ...] */
  int32_t start;    /* mlg_adapter_start: zeros, or drawn by the host, uniform in +-bound */
  double bound;
} mlg_adapter;

/* The values of a tap's recording. Launches may use only these and the plugin's own values. */
typedef struct mlg_tap_forward {
  mlg_value block_input; /* [B*R, inputs], compute dtype: the input of the adapters */
  mlg_value output;      /* [B*R, outputs], compute dtype: the layer's result; adapters add to it in place */
  mlg_value adapters[MLG_TAP_ADAPTERS]; /* as declared, in the compute dtype */
  mlg_value saved[MLG_TAP_ADAPTERS];    /* for the backward recording; unused: 0 */
} mlg_tap_forward;

typedef struct mlg_tap_backward {
  mlg_tap_forward forward; /* as forward left it */
  /* [B*R, outputs], compute dtype: the gradient with respect to the output after the adapters. Afterwards the host uses it
   * as the gradient of the layer's own result. An adapter that only adds does not change it. An adapter that changes the
   * output otherwise (by a factor) writes the new gradient in place, after its last use of the old one.
   */
  mlg_value output_gradient;
  mlg_value gradients[MLG_TAP_ADAPTERS]; /* of the adapters, f32: to be written */
  /* [B*R, inputs], compute dtype; 0: not needed. Adapters that do not read block_input do not write it; if accumulate is 0,
   * the host then clears it. */
  mlg_value input_gradient;
  double accumulate; /* 1: add to input_gradient, 0: write all of it */
} mlg_tap_backward;

/* A document of a batch. */
typedef struct mlg_ttt_document {
  const double* losses; /* [chunks]: booked mean loss of each of its chunks so far, nats per token */
  int64_t chunks;
  int32_t more; /* 1: it has a later chunk; 0: learning from it now cannot change its scores */
} mlg_ttt_document;

/* An adapter of one tap. */
typedef struct mlg_ttt_tensor {
  const char* kind; /* of the tap */
  const char* name; /* as declared */
  int32_t slot;     /* of the tap */
  int32_t start;    /* mlg_adapter_start */
} mlg_ttt_tensor;

/* The facts for a choice of the rule. A chunk of a batch is booked and not yet revealed. Or chunk is -1: a batch of the usual
 * number of documents is about to begin; then documents is 0, and tensors has all adapters. */
typedef struct mlg_ttt_chunk {
  int64_t batch;         /* position in the order of scoring, from 0 */
  int64_t chunk, chunks; /* this one, from 0, and how many the batch has */
  int64_t updates;       /* gradient steps since the optimiser's state was last empty */
  int64_t documents;
  const mlg_ttt_document* document; /* [documents], in the order of the batch */
  const mlg_ttt_tensor* tensors;    /* [tensor_count] */
  int64_t tensor_count;
} mlg_ttt_chunk;

/* The choice of the rule. The host fills in presets; plan() may change them. */
typedef struct mlg_ttt_step {
  int64_t gradient_steps; /* on this chunk, 0 to 1000; preset: 1 */
  double lr_factor;       /* times the learning rate of [ttt.optimizer], not negative; preset: 1 */
  double*
      weights; /* [documents]: factor of each document's mean loss in the objective, not negative; preset: 1 */
  /* [tensor_count]: the share of its adapters that the batch inherits from the batch before it. 1: all; 0: new first values;
   * between: first values + keep * (values - first values). Preset: 0 */
  double* keep;
  int32_t keep_state; /* 1: the batch inherits the optimiser's state; preset: 0 */
} mlg_ttt_step;

/* A pass of SGD between two batches. It trains the whole model on the documents that are scored so far. */
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
  /* Adapters; all three are null if the plugin has none. declare() fills `out`, and sets `count` to 0 for a tap without
   * adapters. */
  mlg_error (*declare)(void* instance, const mlg_tap* tap, mlg_adapter out[MLG_TAP_ADAPTERS],
                       uint32_t* count);
  mlg_error (*record_forward)(void* instance, const mlg_recorder*, const mlg_tap*, mlg_tap_forward*);
  mlg_error (*record_backward)(void* instance, const mlg_recorder*, const mlg_tap*, const mlg_tap_backward*);
  /* Called in two places: before the run, for each batch that can inherit adapters; and after each booked chunk whose batch
   * has a later chunk. The first call fills in keep and keep_state, the second the other members of `out`. It is a pure
   * function of its arguments, since a continued run and other ranks must get the same answers. It neither allocates nor
   * waits. Null: the presets. */
  mlg_error (*plan)(void* instance, const mlg_ttt_chunk* booked, mlg_ttt_step* out);
  /* Base-model updates; both are null if the plugin has none. base_rate gives the learning rate of chunk `index` of
   * `count`. */
  mlg_error (*base_update)(void* instance, mlg_base_update* out);
  mlg_error (*base_rate)(void* instance, int64_t index, int64_t count, double* lr);
} mlg_ttt_table;

#ifdef __cplusplus
}
#endif
#endif

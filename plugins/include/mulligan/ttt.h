/* Test-time-training plugins: what adapts while the validation set is scored.
 *
 * The host owns the order: score -> book -> reveal -> update. A plugin never sees a token. Before anything is
 * scored it records how its adapters act in the forward pass and how gradients reach them; the host decides
 * when a gradient step happens, and puts a weight on a token's loss only after that token has been scored and
 * booked. */
#ifndef MULLIGAN_TTT_H
#define MULLIGAN_TTT_H

#include <mulligan/config.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A linear layer of the forward pass, for a batch of documents of equal window length. */
typedef struct mlg_tap {
  const char* kind;        /* "q", "k", "v", "attention_output", "mlp", "head" */
  int32_t slot;            /* execution slot in the layer order, from 0; -1 for the head */
  int32_t layer;           /* physical layer; -1 for the head */
  int64_t documents;       /* B: adapters are per document */
  int64_t tokens;          /* R: tokens of each document's window */
  int64_t inputs, outputs; /* features */
  mlg_value block_input;   /* [B*R, inputs], compute dtype: what adapters read */
  mlg_value output; /* [B*R, outputs], compute dtype: the layer's result, to which adapters add in place */
} mlg_tap;

typedef enum mlg_adapter_start { MLG_ADAPTER_ZERO = 0, MLG_ADAPTER_UNIFORM = 1 } mlg_adapter_start;
typedef enum mlg_adapter_reset { MLG_RESET_KEEP = 0, MLG_RESET_START = 1 } mlg_adapter_reset;

/* Declares a trainable f32 tensor of the tap [documents, ...], found again under `name` when the tap is
 * recorded again. start: its first value (uniform in +-bound, drawn by the host; or zero). reset: what
 * happens when a new batch of documents takes its place: kept (warm start), or set to a new start value.
 * `read`: the value to read in the compute dtype; `gradient`: f32, to be added to. */
typedef struct mlg_adapters {
  void* self;
  mlg_error (*adapter)(void* self, const char* name, const mlg_tensor* shape, int32_t start, double bound,
                       int32_t reset, mlg_value* read, mlg_value* gradient);
} mlg_adapters;

/* Whole-model updates between batches ("phases"), on documents scored so far. */
typedef struct mlg_base_update {
  int64_t chunk_tokens; /* tokens trained on at one learning rate; the last chunk is never trained */
  int64_t batch_rows;   /* rows of the evaluation's sequence length in one step, at most */
  int64_t epochs;
  int32_t respect_documents; /* 1: attention stays inside documents; 0: rows are plain causal */
  double clip_norm;          /* 0: none */
  double momentum;
} mlg_base_update;

typedef struct mlg_ttt_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Per-document adapters; all NULL when the plugin has none. adapts: whether the tap gets an adapter. */
  int32_t (*adapts)(void* instance, const mlg_tap* tap);
  mlg_error (*record_forward)(void* instance, const mlg_recorder* recorder, const mlg_adapters* adapters,
                              const mlg_tap* tap);
  /* output_gradient [B*R, outputs]; input_gradient [B*R, inputs] or 0 when nobody needs it; accumulate: 1
   * adds to it. */
  mlg_error (*record_backward)(void* instance, const mlg_recorder* recorder, const mlg_adapters* adapters,
                               const mlg_tap* tap, mlg_value output_gradient, mlg_value input_gradient,
                               double accumulate);
  /* Base-model updates; both NULL when the plugin has none. rate: learning rate of chunk `index` of `count`.
   */
  mlg_error (*base_update)(void* instance, mlg_base_update* out);
  mlg_error (*base_rate)(void* instance, int64_t index, int64_t count, double* lr);
} mlg_ttt_table;

#ifdef __cplusplus
}
#endif
#endif

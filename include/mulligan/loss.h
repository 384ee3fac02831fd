/* Loss plugins: record the per-token loss and its gradient with respect to the logits. */
#ifndef MULLIGAN_LOSS_H
#define MULLIGAN_LOSS_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLG_LOSS_MAX_SAVED 4

/* The meaning of token_loss. */
typedef enum mlg_loss_value {
  MLG_LOSS_CROSS_ENTROPY =
      0,             /* cross entropy of the target in nats, possibly plus a term that is not negative */
  MLG_LOSS_OTHER = 1 /* another loss that falls as the target becomes more likely: focal, margin */
} mlg_loss_value;

/* Forward. Inputs: logits, targets, softcap, hidden. Outputs: token_loss (the host's value, to be written) and saved. `saved` holds
 * at most MLG_LOSS_MAX_SAVED values that backward needs, made with recorder->scratch; unused entries are 0. */
typedef struct mlg_loss_forward {
  mlg_value logits;     /* [T, V] f32 or bf16 */
  mlg_value targets;    /* [T] i32; negative: no loss, no gradient at that position */
  mlg_value token_loss; /* [T] f32, nats */
  double softcap; /* c of c*tanh(x/c) when fuses_softcap is set and the model has a softcap; else 0: none */
  mlg_value saved[MLG_LOSS_MAX_SAVED];
  /* [T, D], compute dtype: the model's final hidden state, which the head multiplies (after the final norm). 0 if
   * reads_hidden is 0. */
  mlg_value hidden;
} mlg_loss_forward;

/* Backward: writes logits_gradient = upstream[t] * d token_loss[t] / d logits[t, :], and hidden_gradient if it is given. */
typedef struct mlg_loss_backward {
  mlg_loss_forward forward; /* as forward left it */
  mlg_value upstream;       /* [T] f32: derivative of the objective with respect to token_loss */
  /* [T, V], dtype of the logits. It may share memory with the logits, so kernels read an element before they write it. */
  mlg_value logits_gradient;
  /* [T, D], dtype of hidden: upstream[t] * d token_loss[t] / d hidden[t, :], without the part through the logits. 0: not
   * needed. */
  mlg_value hidden_gradient;
  double accumulate; /* 1: add to hidden_gradient, 0: write it */
} mlg_loss_backward;

typedef struct mlg_loss_table {
  mlg_plugin_header header;
  /* 1: the loss gets the logits without the model's softcap and applies it. 0: the host applies it before. */
  int32_t fuses_softcap;
  /* 1: the loss reads the model's final hidden state and writes its gradient. */
  int32_t reads_hidden;
  /* An mlg_loss_value. It decides what the host checks, and whether the host compares the training loss with ln V and with
   * the validation loss. */
  int32_t value;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  mlg_error (*record_forward)(void* instance, const mlg_recorder* recorder, mlg_loss_forward* forward);
  mlg_error (*record_backward)(void* instance, const mlg_recorder* recorder,
                               const mlg_loss_backward* backward);
  /* May be null, and is not called if reads_hidden is 1. Records token_loss and logits_gradient together, for graphs that
   * know `upstream` before the forward pass. Other graphs use record_forward and record_backward. forward.saved is 0 and
   * stays 0. */
  mlg_error (*record_forward_backward)(void* instance, const mlg_recorder* recorder,
                                       const mlg_loss_backward* both);
} mlg_loss_table;

#ifdef __cplusplus
}
#endif
#endif

/* Cross entropy by the backend's kernels. */
#include <mulligan/loss.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_loss_table) == 112, "as released");

static mlg_error record_forward(void* instance, const mlg_recorder* recorder, mlg_loss_forward* forward) {
  mlg_tensor shape;
  mlg_error error = recorder->describe(recorder->self, forward->token_loss, &shape);
  (void)instance;
  if (!error) error = recorder->scratch(recorder->self, &shape, &forward->saved[0]);
  if (error) return error;
  const mlg_value arguments[4] = {forward->logits, forward->targets, forward->token_loss, forward->saved[0]};
  return recorder->launch(recorder->self, "cross_entropy_fwd", arguments, 4, NULL, 0);
}
static mlg_error record_backward(void* instance, const mlg_recorder* recorder,
                                 const mlg_loss_backward* backward) {
  const mlg_loss_forward* forward = &backward->forward;
  const mlg_value arguments[5] = {forward->logits, forward->targets, forward->saved[0], backward->upstream,
                                  backward->logits_gradient};
  (void)instance;
  return recorder->launch(recorder->self, "cross_entropy_bwd", arguments, 5, NULL, 0);
}

static const mlg_loss_table table = {HEADER(mlg_loss_table, MLG_LOSS, "old_loss", NULL, 0),
                                     0,
                                     create,
                                     destroy,
                                     record_forward,
                                     record_backward};
EXPORTED const char mlg_abi_1_loss_old_loss = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}

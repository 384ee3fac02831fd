#include "framework/config/model_config.h"

namespace mulligan {

void resolve_model_defaults(ModelConfig& model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_width == 0 && model.heads > 0) model.head_width = model.width / model.heads;
  if (model.mlp_hidden == 0) model.mlp_hidden = 4 * model.width;
  if (model.rope.dims == 0) model.rope.dims = model.head_width;
  if (model.xsa_last_layers < 0) model.xsa_last_layers = model.layers;
}

}  // namespace mulligan

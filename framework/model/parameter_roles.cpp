#include "framework/model/parameter_roles.h"

#include "framework/model/qwen2/parameters.h"

namespace mulligan {

const char* embedding_parameter(const ModelConfig& model) {
  return model.family == ModelFamily::qwen2 ? qwen2::embedding_parameter : "tok_emb.weight";
}

const char* head_parameter(const ModelConfig& model) {
  return model.tied_head ? embedding_parameter(model)
                         : qwen2::head_parameter;  // the same name in both families
}

}  // namespace mulligan

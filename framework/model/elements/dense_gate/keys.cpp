#include "framework/config/model_elements.h"

namespace mulligan::elements::dense_gate {

ElementDeclaration declaration() {
  return {"dense_gate", "", [](Schema<ModelConfig>& schema, const std::string&) {
            schema.key("attention_gate", &ModelConfig::attention_gate,
                       "per-head sigmoid gate on the attention output");
          }};
}

}  // namespace mulligan::elements::dense_gate

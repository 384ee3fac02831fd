#include "framework/config/model_elements.h"

namespace mulligan::elements::softcap {

ElementDeclaration declaration() {
  return {
      "softcap", "", [](Schema<ModelConfig>& schema, const std::string&) {
        schema.key("softcap", &ModelConfig::softcap, "c of logits = c * tanh(z / c); 0 = off").range(0, 1e6);
      }};
}

}  // namespace mulligan::elements::softcap

#include "framework/config/model_elements.h"
#include "framework/core/error.h"

namespace mulligan::elements::xsa {
namespace {

void keys(Schema<ModelConfig>& schema, const std::string&) {
  schema
      .key("xsa_last_layers", &ModelConfig::xsa_last_layers,
           "number of last layers whose attention output is made orthogonal to its own value (XSA); -1 = "
           "all, 0 = none")
      .range(-1, 1024)
      .derived("`model.layers`");
}

void check(const ModelConfig& m, const Settings& s) {
  if (m.xsa_last_layers <= m.layers) return;
  throw config_error("{} is {}, but there are only {} = {} layers; use -1 for all.",
                     s.where("model.xsa_last_layers"), m.xsa_last_layers, s.where("model.layers"), m.layers);
}

}  // namespace

ElementDeclaration declaration() {
  return {"xsa", "", keys, check};
}

}  // namespace mulligan::elements::xsa

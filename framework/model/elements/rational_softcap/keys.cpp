#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/rational_softcap/config.h"

namespace mulligan::elements::rational_softcap {
namespace {

constexpr const char* name = "rational_softcap";

const Schema<Config>& table() {
  static const Schema<Config> schema = [] {
    Schema<Config> s;
    s.key("cap", &Config::cap, "c of logits = c * z / sqrt(z^2 + c^2), in f32; 0 = off").range(0, 1e6);
    return s;
  }();
  return schema;
}

void check(const ModelConfig& m, const Settings& s) {
  if (config_of(m).cap == 0 || m.softcap == 0) return;
  throw config_error("{} is {}, but {} is {}, and logits are capped once; set model.softcap = 0.",
                     s.where("model.rational_softcap.cap"), config_of(m).cap, s.where("model.softcap"),
                     m.softcap);
}

}  // namespace

void set_config(ModelConfig& model, const Config& config) {
  set_element_config(model, name, table(), config);
}

ElementDeclaration declaration() {
  return {name, "Rational softcap of the logits, in place of the hyperbolic one of model.softcap.",
          [](Schema<ModelConfig>& schema) { declare_element_table(schema, name, table()); }, check};
}

}  // namespace mulligan::elements::rational_softcap

#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/rational_softcap/config.h"

namespace mulligan::elements::rational_softcap {

void declare_keys(Schema<Config>& s) {
  s.key("cap", &Config::cap, "c of logits = c * z / sqrt(z^2 + c^2), in f32; 0 = off").range(0, 1e6);
}

namespace {

void check(const ModelConfig& m, const Settings& s) {
  if (config_of(m).cap == 0 || m.softcap == 0) return;
  throw config_error("{} is {}, but {} is {}, and logits are capped once; set model.softcap = 0.",
                     s.where("model.rational_softcap.cap"), config_of(m).cap, s.where("model.softcap"),
                     m.softcap);
}

}  // namespace

ElementDeclaration declaration() {
  return {"rational_softcap",
          "Rational softcap of the logits, in place of the hyperbolic one of model.softcap.",
          declare_element_table<Config>, check};
}

}  // namespace mulligan::elements::rational_softcap

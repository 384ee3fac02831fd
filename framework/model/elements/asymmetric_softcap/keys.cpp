#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/asymmetric_softcap/config.h"

namespace mulligan::elements::asymmetric_softcap {

void declare_keys(Schema<Config>& s) {
  s.key("enabled", &Config::enabled,
        "where tokens are scored, positive and negative logits are capped by a parameter each, which begin "
        "as model.softcap; training keeps that one cap, so nothing moves them (inert in the records)");
}

namespace {

void check(const ModelConfig& m, const Settings& s) {
  if (!config_of(m).enabled || m.softcap > 0) return;
  throw config_error("{} is on, but {} is 0, so there is no cap to begin with; set model.softcap.",
                     s.where("model.asymmetric_softcap.enabled"), s.where("model.softcap"));
}

}  // namespace

ElementDeclaration declaration() {
  return {"asymmetric_softcap", "Asymmetric softcap of the logits that are scored.",
          declare_element_table<Config>, check};
}

}  // namespace mulligan::elements::asymmetric_softcap

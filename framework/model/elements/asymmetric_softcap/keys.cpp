#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/asymmetric_softcap/config.h"

namespace mulligan::elements::asymmetric_softcap {
namespace {

constexpr const char* name = "asymmetric_softcap";

const Schema<Config>& table() {
  static const Schema<Config> schema = [] {
    Schema<Config> s;
    s.key("enabled", &Config::enabled,
          "where tokens are scored, positive and negative logits are capped by a parameter each, which begin "
          "as model.softcap; training keeps that one cap, so nothing moves them (inert in the records)");
    return s;
  }();
  return schema;
}

void check(const ModelConfig& m, const Settings& s) {
  if (!config_of(m).enabled || m.softcap > 0) return;
  throw config_error("{} is on, but {} is 0, so there is no cap to begin with; set model.softcap.",
                     s.where("model.asymmetric_softcap.enabled"), s.where("model.softcap"));
}

}  // namespace

void set_config(ModelConfig& model, const Config& config) {
  set_element_config(model, name, table(), config);
}

ElementDeclaration declaration() {
  return {name, "Asymmetric softcap of the logits that are scored.",
          [](Schema<ModelConfig>& schema) { declare_element_table(schema, name, table()); }, check};
}

}  // namespace mulligan::elements::asymmetric_softcap

#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/sparse_gate/config.h"

namespace mulligan::elements::sparse_gate {

void declare_keys(Schema<Config>& s) {
  s.key("window", &Config::window,
        "first dimensions of the attention part's normed input that the gate reads; 0 = no sparse gate")
      .range(0, 65536);
  s.key("scale", &Config::scale, "factor on the gate's logit, before the sigmoid").range(0, 1e3);
}

namespace {

void check(const ModelConfig& m, const Settings& s) {
  const Config config = config_of(m);
  if (config.window == 0) return;
  if (config.window > m.width) {
    throw config_error("{} is {}, but the normed input has only {} = {} dimensions; choose a smaller window.",
                       s.where("model.sparse_gate.window"), config.window, s.where("model.width"), m.width);
  }
  if (m.attention_gate) {
    throw config_error("{} is {}, but {} is on, and a head has one gate; set model.attention_gate = false.",
                       s.where("model.sparse_gate.window"), config.window, s.where("model.attention_gate"));
  }
}

}  // namespace

ElementDeclaration declaration() {
  return {"sparse_gate",
          "Sparse gate: a sigmoid gate per head that reads a few dimensions, in place of attention_gate.",
          declare_element_table<Config>, check};
}

}  // namespace mulligan::elements::sparse_gate

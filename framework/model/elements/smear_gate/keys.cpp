#include "framework/config/model_elements.h"
#include "framework/core/error.h"
#include "framework/model/elements/smear_gate/config.h"

namespace mulligan::elements::smear_gate {

void declare_keys(Schema<Config>& s) {
  s.key("window", &Config::window, "first dimensions of the embedding that the gate reads; 0 = no smear gate")
      .range(0, 65536);
  s.key("document_start", &Config::document_start,
        "token that begins a document and is mixed with nothing, the "
        "tokenizer's BOS; -1 = documents are mixed where they meet")
      .range(-1, (1 << 18) - 1);
}

namespace {

void check(const ModelConfig& m, const Settings& s) {
  const Config config = config_of(m);
  config_error_if(config.window > m.width,
                  "{} is {}, but an embedding has only {} = {} dimensions; choose a smaller window.",
                  s.where("model.smear_gate.window"), config.window, s.where("model.width"), m.width);
  config_error_if(config.window > 0 && config.document_start >= m.vocabulary,
                  "{} is {}, but tokens are below {} = {}; give the tokenizer's BOS, or -1 for none.",
                  s.where("model.smear_gate.document_start"), config.document_start,
                  s.where("model.vocabulary"), m.vocabulary);
}

}  // namespace

ElementDeclaration declaration() {
  return {"smear_gate", "Smear gate: each token's embedding takes in a gated share of the one before it.",
          declare_element_table<Config>, check};
}

}  // namespace mulligan::elements::smear_gate

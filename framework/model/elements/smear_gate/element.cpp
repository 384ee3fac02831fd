// Smear gate: before the first norm each token's embedding takes in a share of the one before it, which the
// token's own first dimensions decide. A token that begins a row or a document takes in nothing.
#include "framework/model/elements/element.h"
#include "framework/core/error.h"
#include "framework/model/elements/smear_gate/config.h"
#include "kernels/smear_gate/op.h"

namespace mulligan::elements::smear_gate {
namespace {

constexpr const char *weight = "smear_gate.weight", *lambda = "smear_lambda";

// Both zero: the model begins as one without the gate, and in the first step only lambda moves.
void parameters(const ModelConfig& model, std::vector<ParameterSpec>& out) {
  out.push_back(
      {weight, TensorType(MLG_F32, {1, config_of(model).window}), {{0, 1, Initial::zeros, 0}}, true});
  out.push_back({lambda, TensorType(MLG_F32, {1}), {{0, 1, Initial::zeros, 0}}, false});
}

void check_tokenizer(const ModelConfig& model, int bos_id) {
  const std::int64_t start = config_of(model).document_start;
  if (start == -1 || start == bos_id) return;
  throw config_error(
      "model.smear_gate.document_start is {}, but the tokenizer's documents begin with "
      "token {}; set it to that, or to -1 for documents that are mixed where they meet.",
      start, bos_id);
}

Value mix_embedding(const ElementContext& context, const EmbeddingSite& site) {
  return ops::smear(context.tape, site.x, site.tokens, context.parameters(weight), context.parameters(lambda),
                    {site.row_length, config_of(context.model).document_start});
}

}  // namespace

extern const Element element;
const Element element = {.name = "smear_gate",
                         .active = [](const ModelConfig& model) { return config_of(model).window > 0; },
                         .check_tokenizer = check_tokenizer,
                         .parameters = parameters,
                         .mix_embedding = mix_embedding};

}  // namespace mulligan::elements::smear_gate

// Attention to all of a segment, where the model fills in masked tokens.
#include "framework/model/elements/element.h"
#include "framework/core/error.h"
#include "framework/model/elements/masking/config.h"
#include "kernels/attention/op.h"

namespace mulligan::elements::masking {
namespace {

void check_tokenizer(const ModelConfig& model, int bos_id) {
  const std::int64_t token = config_of(model).token;
  if (token != bos_id) return;
  throw config_error(
      "model.masking.token is {}, with which documents begin; choose a token that the text does not have.",
      token);
}

Value attend(const ElementContext& context, const AttendSite& site) {
  return ops::bidirectional_attention(context.tape, site.q, site.k, site.v, site.cu_seqlens,
                                      context.model.attention_scale);
}

}  // namespace

extern const Element element;
const Element element = {.name = "masking",
                         .active = [](const ModelConfig& model) { return predicts_masked(model); },
                         .check_tokenizer = check_tokenizer,
                         .attend = attend};

}  // namespace mulligan::elements::masking

// Attention with a stated rounding, where [model.attention] asks for anything but plain attention.
#include "framework/model/elements/element.h"
#include "framework/model/elements/attention/config.h"
#include "kernels/attention/op.h"

namespace mulligan::elements::attention {
namespace {

Value attend(const ElementContext& context, const AttendSite& site) {
  const Config config = config_of(context.model);
  ops::StableAttention how;
  how.beta = config.beta;
  how.tolerance = config.tolerance;
  how.min_repeats = config.stabilize == Stabilize::off ? 0 : config.min_repeats;
  how.cap = config.cap;
  how.round_normalizer = config.normalizer == Normalizer::rounded;
  how.scale = context.model.attention_scale;
  how.round_sums = config.output_rounding == OutputRounding::sums;
  return ops::stable_attention(context.tape, site.q, site.k, site.v, site.cu_seqlens, how);
}

}  // namespace

extern const Element element;
const Element element = {.name = "attention",
                         .active = [](const ModelConfig& model) { return active(config_of(model)); },
                         .attend = attend};

}  // namespace mulligan::elements::attention

#include "framework/config/model_elements.h"
#include "framework/model/elements/attention/config.h"

namespace mulligan::elements::attention {

void declare_keys(Schema<Config>& s) {
  s.key("stabilize", &Config::stabilize,
        "repeat_max: where a query's largest logit occurs more than once in a block of keys, "
        "the softmax subtracts more than it, so that no weight is exactly 1");
  s.key("beta", &Config::beta, "a repeated maximum r > 0 is replaced by beta * r, one below 0 by 0")
      .range(1, 64);
  s.key("tolerance", &Config::tolerance, "logits at least the maximum less this count as the maximum")
      .range(0, 1);
  s.key("min_repeats", &Config::min_repeats, "how often the maximum must occur; 1 = in every row")
      .range(1, 1 << 20);
  s.key("cap", &Config::cap,
        "most by which a maximum is shifted; a larger shift is halved until it is no larger")
      .range(0.1, 60);
  s.key("normalizer", &Config::normalizer,
        "what the weighted sums are divided by: the sum of the weights, or that of the weights as they were "
        "rounded to the compute dtype for the matmul with the values");
  s.key("output_rounding", &Config::output_rounding,
        "sums: the sums are rounded to the compute dtype before they are divided, as in "
        "the kernels where the bias was found; for experiments");
}

ElementDeclaration declaration() {
  return {"attention", "How attention rounds (docs/numerics/attention_bias.md).",
          declare_element_table<Config>};
}

}  // namespace mulligan::elements::attention

#include "framework/model/elements/attention/config.h"

namespace mulligan::elements::attention {
namespace {

constexpr const char* name = "attention";

const Schema<Config>& table() {
  static const Schema<Config> schema = [] {
    Schema<Config> s;
    s.choice<Stabilize>("stabilize", &Config::stabilize,
                        {{"off", Stabilize::off}, {"repeat_max", Stabilize::repeat_max}},
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
    s.choice<Normalizer>(
        "normalizer", &Config::normalizer, {{"exact", Normalizer::exact}, {"rounded", Normalizer::rounded}},
        "what the weighted sums are divided by: the sum of the weights, or that of the weights as they were "
        "rounded to the compute dtype for the matmul with the values");
    s.choice<OutputRounding>("output_rounding", &Config::output_rounding,
                             {{"once", OutputRounding::once}, {"sums", OutputRounding::sums}},
                             "sums: the sums are rounded to the compute dtype before they are divided, as in "
                             "the kernels where the bias was found; for experiments");
    return s;
  }();
  return schema;
}

}  // namespace

void set_config(ModelConfig& model, const Config& config) {
  set_element_config(model, name, table(), config);
}

ElementDeclaration declaration() {
  return {name, "How attention rounds (docs/numerics/attention_bias.md).",
          [](Schema<ModelConfig>& schema) { declare_element_table(schema, name, table()); }};
}

}  // namespace mulligan::elements::attention

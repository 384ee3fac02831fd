// [model.attention]
#pragma once

#include "framework/config/model_config.h"
#include "framework/config/words.h"

namespace mulligan::elements::attention {

enum class Stabilize { off, repeat_max };
enum class Normalizer { exact, rounded };
enum class OutputRounding { once, sums };

// docs/numerics/attention_bias.md describes the effect of each on the numbers.
struct Config {
  Stabilize stabilize = Stabilize::off;
  double beta = 2;               // a repeated positive maximum r is replaced by beta r
  double tolerance = 1e-3;       // logits at least max - tolerance count as the maximum
  std::int64_t min_repeats = 2;  // least number of occurrences of the maximum
  double cap = 20;               // the shift of a maximum is halved until it is at most that
  Normalizer normalizer = Normalizer::exact;
  OutputRounding output_rounding = OutputRounding::once;
};

// Whether the table changes plain attention.
inline bool active(const Config& config) {
  return config.stabilize != Stabilize::off || config.normalizer != Normalizer::exact ||
         config.output_rounding != OutputRounding::once;
}

}  // namespace mulligan::elements::attention

namespace mulligan {

template <>
inline constexpr auto config_words<elements::attention::Stabilize> = std::array{"off", "repeat_max"};
template <>
inline constexpr auto config_words<elements::attention::Normalizer> = std::array{"exact", "rounded"};
template <>
inline constexpr auto config_words<elements::attention::OutputRounding> = std::array{"once", "sums"};

}  // namespace mulligan

namespace mulligan::elements::attention {

inline Config config_of(const ModelConfig& model) {
  Config config;
  read_element(model, "attention.stabilize", config.stabilize);
  read_element(model, "attention.beta", config.beta);
  read_element(model, "attention.tolerance", config.tolerance);
  read_element(model, "attention.min_repeats", config.min_repeats);
  read_element(model, "attention.cap", config.cap);
  read_element(model, "attention.normalizer", config.normalizer);
  read_element(model, "attention.output_rounding", config.output_rounding);
  return config;
}

}  // namespace mulligan::elements::attention

// Replacements for an evaluation of a model that predicts no masked tokens.
#include "framework/eval/evaluator.h"

namespace mulligan {

std::optional<MaskingOptions> masking_options(const ModelConfig&, int) {
  return {};
}
Masking::Masking(const MaskingOptions& options, std::string_view) : options_(options), draws_(0, "") {}
std::int64_t Masking::apply(std::uint64_t, std::span<std::int32_t>, std::span<std::int32_t>) {
  return 0;
}

}  // namespace mulligan

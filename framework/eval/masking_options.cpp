#include "framework/eval/masking_options.h"

#include <fmt/format.h>

#include "framework/model/elements/masking/config.h"

namespace mulligan {

std::optional<MaskingOptions> masking_options(const ModelConfig& model, int bos_id) {
  if (!predicts_masked(model)) return {};
  const elements::masking::Config config = elements::masking::config_of(model);
  MaskingOptions options;
  options.share = config.share;
  options.mask_share = config.mask_share;
  options.random_share = config.random_share;
  options.token = static_cast<std::int32_t>(config.token);
  options.vocabulary = static_cast<std::int32_t>(model.vocabulary);
  options.bos_id = bos_id;
  options.seed = static_cast<std::uint64_t>(config.seed);
  return options;
}

std::string masking_text(const ModelConfig& model) {
  if (!predicts_masked(model)) return {};
  const elements::masking::Config masking = elements::masking::config_of(model);
  return fmt::format("{} of the tokens hidden ({} as token {}, {} as any, seed {})", masking.share,
                     masking.mask_share, masking.token, masking.random_share, masking.seed);
}

}  // namespace mulligan

#include "framework/plugin/transform.h"

namespace mulligan {

void Transform::require_sound(std::span<const mlg_bias> proposal, const mlg_transform_text& text) const {
  if (proposal.size() > static_cast<std::size_t>(biases())) {
    throw run_error("{}: it proposes {} biases, but its table says at most {}; fix the plugin.",
                    plugin().description(), proposal.size(), biases());
  }
  for (std::size_t i = 0; i < proposal.size(); ++i) {
    if (proposal[i].token < 0 || proposal[i].token >= text.vocabulary) {
      throw run_error("{}: it proposes the token {}, but the vocabulary has {}; fix the plugin.",
                      plugin().description(), proposal[i].token, text.vocabulary);
    }
    if (!std::isfinite(proposal[i].bias)) {
      throw run_error("{}: it proposes a bias of {} for the token {}, which is not finite; fix the plugin.",
                      plugin().description(), proposal[i].bias, proposal[i].token);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (proposal[j].token != proposal[i].token) continue;
      throw run_error("{}: it proposes the token {} twice at once; fix the plugin.", plugin().description(),
                      proposal[i].token);
    }
  }
}

}  // namespace mulligan

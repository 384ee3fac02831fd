// TttPlugin: a test-time-training rule made by a plugin; contracts of the calls in <mulligan/ttt.h>.
#pragma once

#include <mulligan/ttt.h>

#include <cmath>
#include <vector>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class TttPlugin : public PluginInstance<mlg_ttt_table> {
 public:
  using PluginInstance::PluginInstance;

  bool has_adapters() const { return table().declare && table().record_forward && table().record_backward; }
  bool has_base_update() const { return table().base_update && table().base_rate; }

  // The adapters of one tap; none when it stays as it is.
  std::vector<mlg_adapter> declare(const mlg_tap& tap) const {
    std::vector<mlg_adapter> adapters(MLG_TAP_ADAPTERS);
    std::uint32_t count = 0;
    call("declare", table().declare, &tap, adapters.data(), &count);
    if (count > MLG_TAP_ADAPTERS) {
      throw run_error("{}: it declares {} adapters at one tap, at most {} are possible",
                      plugin().description(), count, MLG_TAP_ADAPTERS);
    }
    adapters.resize(count);
    return adapters;
  }
  // Fills forward.saved.
  void record_forward(const mlg_recorder& recorder, const mlg_tap& tap, mlg_tap_forward& forward) const {
    call("record_forward", table().record_forward, &recorder, &tap, &forward);
  }
  void record_backward(const mlg_recorder& recorder, const mlg_tap& tap,
                       const mlg_tap_backward& backward) const {
    call("record_backward", table().record_backward, &recorder, &tap, &backward);
  }

  mlg_base_update base_update() const {
    mlg_base_update numbers{};
    call("base_update", table().base_update, &numbers);
    return numbers;
  }
  double base_rate(std::int64_t index, std::int64_t count) const {
    double lr = 0;
    call("base_rate", table().base_rate, index, count, &lr);
    if (!std::isfinite(lr) || lr < 0) {
      throw config_error(
          "[{}]: {} gives the learning rate {} for chunk {} of {}, but it must be finite and not negative; "
          "fix the plugin or its keys.",
          section(), plugin().description(), lr, index + 1, count);
    }
    return lr;
  }
};

}  // namespace mulligan

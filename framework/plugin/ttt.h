// TttPlugin: a test-time-training rule made by a plugin; contracts of the calls in <mulligan/ttt.h>.
#pragma once

#include <mulligan/ttt.h>

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
    check(table().declare(instance(), &tap, adapters.data(), &count));
    if (count > MLG_TAP_ADAPTERS) {
      throw run_error("{}: it declares {} adapters at one tap, at most {} are possible",
                      plugin().description(), count, MLG_TAP_ADAPTERS);
    }
    adapters.resize(count);
    return adapters;
  }
  // Fills forward.saved.
  void record_forward(const mlg_recorder& recorder, const mlg_tap& tap, mlg_tap_forward& forward) const {
    check(table().record_forward(instance(), &recorder, &tap, &forward));
  }
  void record_backward(const mlg_recorder& recorder, const mlg_tap& tap,
                       const mlg_tap_backward& backward) const {
    check(table().record_backward(instance(), &recorder, &tap, &backward));
  }

  mlg_base_update base_update() const {
    mlg_base_update numbers{};
    check(table().base_update(instance(), &numbers));
    return numbers;
  }
  double base_rate(std::int64_t index, std::int64_t count) const {
    double lr = 0;
    check(table().base_rate(instance(), index, count, &lr));
    return lr;
  }
};

}  // namespace mulligan

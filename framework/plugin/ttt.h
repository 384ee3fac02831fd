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

  // The adapters of one tap; none: the tap does not change.
  std::vector<mlg_adapter> declare(const mlg_tap& tap) const {
    std::vector<mlg_adapter> adapters(MLG_TAP_ADAPTERS);
    std::uint32_t count = 0;
    call(table().declare, &tap, adapters.data(), &count);
    if (count > MLG_TAP_ADAPTERS) {
      throw run_error("{}: it declares {} adapters at one tap, at most {} are possible",
                      plugin().description(), count, MLG_TAP_ADAPTERS);
    }
    adapters.resize(count);
    return adapters;
  }
  // Fills forward.saved.
  void record_forward(const mlg_recorder& recorder, const mlg_tap& tap, mlg_tap_forward& forward) const {
    call(table().record_forward, &recorder, &tap, &forward);
  }
  void record_backward(const mlg_recorder& recorder, const mlg_tap& tap,
                       const mlg_tap_backward& backward) const {
    call(table().record_backward, &recorder, &tap, &backward);
  }

  // The rule's choice; the caller presets `step` (mlg_ttt_step). Throws config_error for an impossible answer.
  void plan(const mlg_ttt_chunk& booked, mlg_ttt_step& step) const {
    if (!table().plan) return;
    call(table().plan, &booked, &step);
    const auto require = [&](bool possible, const char* what, double value, const char* range) {
      if (possible) return;
      const std::string when =
          booked.chunk < 0 ? std::string("before it") : fmt::format("after chunk {}", booked.chunk + 1);
      throw config_error(
          "[{}]: {} chooses {} = {} for batch {}, {}, but {} is possible; fix the plugin or its keys.",
          section(), plugin().description(), what, value, booked.batch + 1, when, range);
    };
    if (booked.chunk < 0) {
      for (std::int64_t i = 0; i < booked.tensor_count; ++i)
        require(step.keep[i] >= 0 && step.keep[i] <= 1, "keep", step.keep[i], "0 to 1");
      return;
    }
    require(step.gradient_steps >= 0 && step.gradient_steps <= 1000, "gradient_steps",
            static_cast<double>(step.gradient_steps), "0 to 1000");
    require(std::isfinite(step.lr_factor) && step.lr_factor >= 0, "lr_factor", step.lr_factor,
            "a finite number from 0 on");
    for (std::int64_t i = 0; i < booked.documents; ++i) {
      require(std::isfinite(step.weights[i]) && step.weights[i] >= 0, "a weight", step.weights[i],
              "a finite number from 0 on");
    }
  }

  mlg_base_update base_update() const { return result<mlg_base_update>(table().base_update); }
  double base_rate(std::int64_t index, std::int64_t count) const {
    const auto lr = result<double>(table().base_rate, index, count);
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

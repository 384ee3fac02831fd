// Checks of score-transform plugins.
#include "framework/check/kind_checks.h"
#include "framework/check/transform_probe.h"
#include "framework/plugin/transform.h"

namespace mulligan {

void check_transform(const PluginHandle& plugin, const PluginConfig& config, CheckList& list) {
  const Transform transform(plugin, config);
  constexpr std::int64_t vocabulary = 53;
  list.add("proposals have at most as many biases as the table says", [&]() -> std::string {
    if (transform.biases() >= 1 && transform.biases() <= MLG_TRANSFORM_BIASES) return {};
    return fmt::format("its table says {} biases, but 1 to {} are possible", transform.biases(),
                       MLG_TRANSFORM_BIASES);
  });
  list.add("no proposal knows its own or a later token, or an earlier stream",
           [&] { return transform_problem(transform, vocabulary); });
  list.add("asking twice changes nothing", [&]() -> std::string {
    const auto once = transform.open({vocabulary, 200, 1}), twice = transform.open({vocabulary, 200, 1});
    once->begin(0, 1);
    twice->begin(0, 1);
    for (std::int32_t i = 0; i < 200; ++i) {
      const auto expected = once->propose(0);
      twice->propose(0);
      const auto found = twice->propose(0);
      if (!same_biases(expected, found))
        return fmt::format("token {} gets another proposal when it is asked for twice", i + 1);
      const std::int32_t token = i * i % 7;
      once->observe(0, token);
      twice->observe(0, token);
    }
    return {};
  });
}

}  // namespace mulligan

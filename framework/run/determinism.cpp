#include "framework/run/determinism.h"

#include "framework/core/error.h"

namespace mulligan {
namespace {

// The promise of a backend that `config` needs; NONE: any backend will do.
mlg_determinism needed(const RunConfig& config, const Backend& backend) {
  const Determinism level = config.run.determinism;
  if (level == Determinism::off) return MLG_DETERMINISM_NONE;
  return level == Determinism::batch && backend.info().computes ? MLG_DETERMINISM_BATCH : MLG_DETERMINISM_RUN;
}

}  // namespace

std::string_view promise_name(mlg_determinism promise) {
  return promise >= MLG_DETERMINISM_BATCH ? "batch" : promise == MLG_DETERMINISM_RUN ? "run" : "off";
}

void require_determinism(const RunConfig& config, const Backend& backend) {
  const mlg_determinism promised = backend.promises(), wanted = needed(config, backend);
  if (promised >= wanted) return;
  const std::string_view level = word_of(config.run.determinism);
  const std::string who = backend.plugin().description() +
                          (config.kernels.empty() ? "" : " with the kernels of [[backend.kernels]]");
  if (promised < MLG_DETERMINISM_RUN) {
    throw config_error(
        "run.determinism = \"{}\" cannot be kept: {} does not promise that a repeated run gives the same "
        "bits; set \"off\" or take another backend.",
        level, who);
  }
  throw config_error(
      "run.determinism = \"{}\" cannot be kept: {} does not promise that a row's bits are the same whatever "
      "rows are computed with it; set backend.batch_invariant = true where it has that key, set \"run\", or "
      "take another backend.",
      level, who);
}

}  // namespace mulligan

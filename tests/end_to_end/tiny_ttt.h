// Test-time training of weights that a tiny run has written.
#pragma once

#include "framework/run/weights.h"
#include "framework/ttt/ttt_session.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end {

// What most of its tests set alike.
inline const Overrides ttt_keys = {"ttt.optimizer.lr=0.002", "ttt.adapters.rank=4", "ttt.adapters.alpha=4",
                                   "ttt.base.chunk_tokens=128", "ttt.base.batch_rows=2"};

// Without console output; its files lie in `directory`, if there is one.
inline TttResult adapt(LoadedConfig loaded, const std::filesystem::path& weights,
                       const std::filesystem::path& directory = {}) {
  TttOptions options;
  options.console = nullptr;
  options.directory = directory;
  return run_ttt(loaded, test_plugin_host(), "weights", weights_in(weights), options);
}

}  // namespace mulligan::end_to_end

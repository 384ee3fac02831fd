#include "framework/train/checkpoint_keeper.h"

namespace mulligan {

bool CheckpointKeeper::due(std::int64_t steps, double seconds) {
  note(writer_.completed());
  const bool by_steps = config_.every_steps > 0 && steps - begun_steps_ >= config_.every_steps;
  const bool by_time = config_.every_seconds > 0 && seconds - begun_seconds_ >= config_.every_seconds;
  return (by_steps || by_time) && !writer_.busy();
}

void CheckpointKeeper::begin(std::int64_t steps, double seconds) {
  begun_steps_ = steps;
  begun_seconds_ = seconds;
}

void CheckpointKeeper::wait() noexcept {
  try {
    writer_.finish();
  } catch (...) {  // the error that ends this run was reported
  }
}

void CheckpointKeeper::restore(const std::filesystem::path& path, std::int64_t steps, double seconds) {
  last_ = path;
  begin(steps, seconds);
}

void CheckpointKeeper::note(const std::optional<std::filesystem::path>& written) {
  if (!written) return;
  last_ = *written;
  outputs_.keep();
  outputs_.log().print("checkpoint written: {}", written->string());
}

}  // namespace mulligan

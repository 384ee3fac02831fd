#include "framework/train/run_outputs.h"

#include <system_error>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
RunOutputs::RunOutputs(const RunConfig& config, const ConsoleOptions& console)
    : config_(config),
      files_{config.run.directory},
      earlier_(config.run.directory, config.checkpoint.directory),
      log_(console, {}),
      plugin_lines_(log_) {
  log_.keep_lines();
}

RunOutputs::~RunOutputs() {
  if (!set_aside_) return;
  try {
    const std::string back = earlier_.recover();
    if (!back.empty()) log_.line(back);
  } catch (const Error& error) {
    log_.print("warning: the run that was to be replaced is still set aside: {}", error.what());
  }
}

void RunOutputs::require_place(const ResumePoint& resume, bool resumed) const {
  if (resume.replaces) {
    earlier_.require_only_a_run();
  } else if (!resume.in_place) {
    require_fresh_directory(config_, resumed);
  }
}

void RunOutputs::begin(const ResumePoint& resume, const std::string& resolved_config) {
  if (!resume.in_place) {
    set_aside_ = earlier_.worth_keeping();
    if (set_aside_) {
      earlier_.set_aside();
    } else {
      remove_unfinished_run(files_.directory);
    }
  }
  note_attempt(files_.directory, resume.attempt);
  note_start_folder(files_.directory);
  write_file_atomically(files_.config(), resolved_config);
  log_.open_file(files_.log(), resume.in_place);
  if (resume.in_place) {
    metrics_.emplace(files_.metrics(), resume.checkpoint->manifest.step);
  } else {
    metrics_.emplace(files_.metrics());
  }
  if (config_.metrics.tensorboard) metrics_->mirror_to(files_.tensorboard());
}

void RunOutputs::begin_on_rank(int rank, bool goes_on) {
  std::error_code refused;  // which opening the log then says
  std::filesystem::create_directories(files_.ranks(), refused);
  log_.open_file(files_.ranks() / fmt::format("{:04}.log", rank), goes_on);
  metrics_.emplace();
}

void RunOutputs::keep() {
  earlier_.forget();
  set_aside_ = false;
}

}  // namespace mulligan

#include "framework/train/run_outputs.h"

#include <system_error>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
RunOutputs::RunOutputs(const RunConfig& config, const ConsoleOptions& console)
    : config_(config), files_{config.run.directory}, log_(console, {}), plugin_lines_(log_) {
  log_.keep_lines();
}

RunOutputs::~RunOutputs() {
  if (!replaced_) return;
  try {
    const std::string back = replaced_->recover();
    if (!back.empty()) log_.line(back);
  } catch (const Error& error) {
    log_.print("warning: the run that was to be replaced is still set aside: {}", error.what());
  }
}

void RunOutputs::require_place(const ResumePoint& resume, bool resumed) const {
  if (resume.replaces) {
    ReplacedRun(files_.directory, config_.checkpoint.directory).require_only_a_run();
  } else if (!resume.in_place) {
    require_fresh_directory(config_, resumed);
  }
}

void RunOutputs::begin(const ResumePoint& resume, const std::string& resolved_config) {
  if (!resume.in_place) {
    const ReplacedRun earlier(files_.directory, config_.checkpoint.directory);
    if (earlier.worth_keeping()) {
      earlier.set_aside();
      replaced_ = earlier;
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
  if (replaced_) replaced_->forget();
  replaced_.reset();
}

}  // namespace mulligan

#include "framework/report/tensorboard_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/own_file.h"
#include "framework/report/scalars.h"
#include "framework/report/tensorboard.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// TensorBoard takes files whose names hold this word.
constexpr const char* name_part = "events.out.tfevents.";

void remove_event_files(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(name_part)) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

TensorboardFile::TensorboardFile(const fs::path& folder, const MetricsHistory& history) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!history.steps.empty()) elapsed_ = history.steps.back().elapsed_seconds;
  started_ = now - elapsed_;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw run_error("the folder '{}' cannot be made: {}.", folder.string(), failed.message());
  remove_event_files(folder);
  path_ = folder / fmt::format("{}{:.0f}.mulligan", name_part, started_);
  file_.reset(open_own_file(path_, FileStart::anew));
  write(tensorboard_events(scalars_of(history), started_));
}

void TensorboardFile::add(const StepRecord& record) {
  elapsed_ = record.elapsed_seconds;
  MetricsHistory piece;
  piece.steps.push_back(record);
  append(piece);
}

void TensorboardFile::add(const ValidationRecord& record) {
  MetricsHistory piece;
  piece.validations.push_back(record);
  append(piece);
}

void TensorboardFile::append(const MetricsHistory& piece) {
  std::vector<Scalar> scalars = scalars_of(piece);
  for (Scalar& scalar : scalars) scalar.elapsed_seconds = elapsed_;
  write(tensorboard_records(scalars, started_));
}

void TensorboardFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size() &&
      std::fflush(file_.get()) == 0)
    return;
  throw run_error("the event file '{}' cannot be written: {}.", path_.string(), std::strerror(errno));
}

}  // namespace mulligan

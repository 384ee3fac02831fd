// TensorboardFile: an event file that grows while a run trains.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "framework/report/metrics_reader.h"

namespace mulligan {

class TensorboardFile {
 public:
  // Makes the folder and in it one event file, which begins with `history` (of a run that goes on), in the
  // place of those that are there. Throws run_error when it cannot be written.
  TensorboardFile(const std::filesystem::path& folder, const MetricsHistory& history);

  void add(const StepRecord& record);
  void add(const ValidationRecord& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void append(const MetricsHistory& piece);
  void write(std::string_view bytes);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  double started_ = 0;  // seconds since 1970 when the training clock stood at zero
  double elapsed_ = 0;  // of the training clock at the last step
};

}  // namespace mulligan

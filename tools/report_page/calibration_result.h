// calibration.json of a run directory, for its report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mulligan::report {

struct CalibrationResult {
  struct Bin {
    double low = 0, high = 0, count = 0, confidence = 0, accuracy = 0;
  };
  struct Figures {
    std::string name;
    double items = 0, accuracy = 0, confidence = 0, ece = 0, adaptive_ece = 0, mce = 0, brier = 0,
           loss_nats = 0;
    std::optional<double> swagger, swagger_gap;  // absent: nothing was wrong, or nothing right
  };
  struct Set {
    Figures all;
    std::vector<Bin> bins;
    std::vector<Figures> subjects;
  };
  std::string weights;  // what answered
  std::vector<Set> sets;
};

// Throws data_error that names the file where it is not as mulligan probe calibration writes it.
CalibrationResult read_calibration_result(const std::filesystem::path& path);

}  // namespace mulligan::report

// Answered items, for calibration and for comparisons of two runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lab/calibration/calibration.h"

namespace mulligan::calibration {

// One token of a validation set (choice and answer are token ids) or one question (indices of choices).
struct Item {
  std::string id, subject;
  int choice = 0, answer = 0;
  Prediction prediction;
};

// The items of one source: "validation", or a file of questions.
struct ItemSet {
  std::string name;
  bool questions = false;
  std::vector<Item> items;
};

// The calibration of all items, and of each subject in the order of first occurrence. If there are fewer than two subjects,
// only the whole is given.
Calibration calibrate_items(const std::vector<Item>& items);
std::vector<std::pair<std::string, Calibration>> calibrate_subjects(const std::vector<Item>& items);

// Writes items as JSON lines, and reads them. Reading throws data_error that names file and line.
std::string items_text(const std::vector<ItemSet>& sets);
std::vector<ItemSet> read_items(const std::filesystem::path& path);

}  // namespace mulligan::calibration

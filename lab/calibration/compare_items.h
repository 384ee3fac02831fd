// Several runs on the same items: whether they agree, whether one is better, and where they are confident and wrong.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lab/calibration/calibration.h"

namespace mulligan::calibration {

// Comparison of one run with the first, on one subject ("all" for the whole set).
struct SubjectComparison {
  std::string subject;
  std::size_t run = 0;                                    // index, from 1 on
  std::size_t items = 0, only_first = 0, only_other = 0;  // right in one of the two alone
  double first_accuracy = 0, other_accuracy = 0;
  double p = 1, holm_p = 1;  // McNemar's exact test, two-sided; Holm over all rows of subjects of this run
};

// An item is at risk where the share of the runs that agree, their mean confidence and the ECE of its subject are at least these.
struct RiskLimits {
  double consistency = 0.8, confidence = 0.8, ece = 0.10;
};
// Items at risk. An item is wrong where the first run is.
struct Risks {
  std::vector<std::string> ids;
  std::size_t wrong = 0;  // of all items
  std::size_t flagged_wrong = 0;
  std::optional<double> precision, recall;  // absent where nothing is flagged, or nothing is wrong
};

struct SetComparison {
  std::string name;
  Consistency consistency;
  std::vector<SubjectComparison> subjects;
  Risks risks;
};

// `runs` by run: the same sets with the same items in the same order. The ECE of an item's domain is that of its subject over all
// runs. Throws data_error that names set and item if they differ, and if there are fewer than two runs.
std::vector<SetComparison> compare_items(const std::vector<std::vector<ItemSet>>& runs,
                                         const RiskLimits& limits = {});

// `names` of the runs, in their order.
std::string comparison_text(const std::vector<SetComparison>& sets, const std::vector<std::string>& names);
std::string comparison_json(const std::vector<SetComparison>& sets, const std::vector<std::string>& names);

// For each set its figures and bins, then its subjects. `weights`: the weights that answered.
std::string calibration_json(const std::vector<ItemSet>& sets, const std::string& weights);

}  // namespace mulligan::calibration

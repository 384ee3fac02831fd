// Calibration: how well a model's confidence predicts whether its answers are right; and the answered items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mulligan::calibration {

// One answer: the probability of the model's choice, whether it was right, and -ln of the probability of the right answer, in
// nats.
struct Prediction {
  double confidence = 0;  // 0 to 1
  bool right = false;
  double loss_nats = 0;
};

// Predictions with a confidence in (low, high]; the first bin also holds 0.
struct Bin {
  double low = 0, high = 0;
  std::size_t count = 0;
  double confidence = 0, accuracy = 0;  // means; 0 if the bin is empty
};

// Guo et al. (2017), "On Calibration of Modern Neural Networks": ECE = sum over bins of n_b / N |accuracy_b -
// confidence_b|, MCE the largest of these differences.
struct Calibration {
  std::size_t count = 0, wrong = 0;
  double accuracy = 0, confidence = 0;  // means
  double ece = 0, mce = 0;              // bins of equal width
  double adaptive_ece = 0;              // bins of equal mass
  double brier = 0;                     // mean of (confidence - right)^2, of the choice that was made
  double loss_nats = 0;                 // mean
  // Mean confidence of wrong answers, absent if there are none; and its excess over that of right answers, absent if there are none
  // of either.
  std::optional<double> swagger, swagger_gap;
  std::vector<Bin> bins, adaptive_bins;
};

inline constexpr int default_bins = 15;

// Throws std::invalid_argument for no predictions, fewer than one bin, or a confidence outside of 0 to 1.
Calibration measure_calibration(std::span<const Prediction> predictions, int bins = default_bins);

// The choice with the largest logit (the first of equal ones), its softmax, and the loss of `answer`, in fp64. Precondition: logits
// are not empty and hold `answer`. Throws std::invalid_argument for logits that are not finite.
struct Choice {
  std::size_t choice = 0;
  Prediction prediction;
};
Choice choose(std::span<const float> logits, std::size_t answer);
Choice choose(std::span<const double> logits, std::size_t answer);

// Whether runs that differ in seed, precision or batch size give the same answers, and which confident answers are wrong.

// Of several runs on the same items.
struct Consistency {
  // Share of the commonest answer among the runs, by item; and its mean over the items.
  std::vector<double> most_common;
  double mean_most_common = 0;
  double pairwise = 0;  // share of equal answers, mean over all pairs of runs
  // The first item that two runs answer differently, counted from 0; for tokens in a row, the place where the runs diverge. Absent:
  // they never do.
  std::optional<std::size_t> first_divergence;
};

// `answers` by run, then by item: two runs or more of one item or more. Throws std::invalid_argument for
// other shapes.
Consistency consistency_of(std::span<const std::vector<int>> answers);

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

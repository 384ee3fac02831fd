#include "lab/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"

namespace mulligan::calibration {
namespace {

// Means of a bin from its sums.
Bin bin_of(double low, double high, std::size_t count, double confidence, double right) {
  if (count == 0) return {low, high, 0, 0, 0};
  const auto n = static_cast<double>(count);
  return {low, high, count, confidence / n, right / n};
}

std::vector<Bin> equal_width(std::span<const Prediction> predictions, int bins) {
  const auto n = static_cast<std::size_t>(bins);
  const auto edge = [&](std::size_t i) { return static_cast<double>(i) / static_cast<double>(n); };
  std::vector<std::size_t> counts(n, 0);
  std::vector<double> confidences(n, 0), rights(n, 0);
  for (const Prediction& p : predictions) {
    auto bin = static_cast<std::size_t>(p.confidence * static_cast<double>(n));
    bin = std::min(bin, n - 1);
    while (bin > 0 && p.confidence <= edge(bin)) --bin;  // an edge belongs to the bin below it
    while (bin + 1 < n && p.confidence > edge(bin + 1)) ++bin;
    ++counts[bin];
    confidences[bin] += p.confidence;
    rights[bin] += p.right ? 1 : 0;
  }
  std::vector<Bin> found;
  for (std::size_t i = 0; i < n; ++i)
    found.push_back(bin_of(edge(i), edge(i + 1), counts[i], confidences[i], rights[i]));
  return found;
}

// As many predictions in each, or one more; fewer bins than asked for where there are fewer predictions.
std::vector<Bin> equal_mass(std::span<const Prediction> predictions, int bins) {
  std::vector<Prediction> sorted(predictions.begin(), predictions.end());
  // Of equal confidence the wrong ones first, so that the order of the input does not count.
  std::ranges::sort(sorted, {}, [](const Prediction& p) { return std::pair(p.confidence, p.right); });
  const std::size_t n = std::min(static_cast<std::size_t>(bins), sorted.size());
  std::vector<Bin> found;
  double low = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t begin = i * sorted.size() / n, end = (i + 1) * sorted.size() / n;
    double confidence = 0, right = 0;
    for (std::size_t j = begin; j < end; ++j) {
      confidence += sorted[j].confidence;
      right += sorted[j].right ? 1 : 0;
    }
    const double high = i + 1 == n ? 1 : sorted[end - 1].confidence;
    found.push_back(bin_of(low, high, end - begin, confidence, right));
    low = high;
  }
  return found;
}

double expected_error(const std::vector<Bin>& bins, double count) {
  double error = 0;
  for (const Bin& bin : bins)
    error += static_cast<double>(bin.count) / count * std::abs(bin.accuracy - bin.confidence);
  return error;
}

template <typename T>
Choice choose_of(std::span<const T> logits, std::size_t answer) {
  Choice choice;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) throw std::invalid_argument("logits are not finite");
    if (logits[i] > logits[choice.choice]) choice.choice = i;
  }
  const auto most = static_cast<double>(logits[choice.choice]);
  double sum = 0;
  for (const T logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  choice.prediction = {1 / sum, choice.choice == answer,
                       std::log(sum) - (static_cast<double>(logits[answer]) - most)};
  return choice;
}

}  // namespace

Calibration measure_calibration(std::span<const Prediction> predictions, int bins) {
  if (predictions.empty()) throw std::invalid_argument("there are no predictions");
  if (bins < 1) throw std::invalid_argument("one bin or more");
  Calibration result;
  result.count = predictions.size();
  double of_right = 0, of_wrong = 0;
  for (const Prediction& p : predictions) {
    if (!(p.confidence >= 0 && p.confidence <= 1)) throw std::invalid_argument("confidence lies from 0 to 1");
    result.wrong += p.right ? 0 : 1;
    (p.right ? of_right : of_wrong) += p.confidence;
    result.brier += std::pow(p.confidence - (p.right ? 1 : 0), 2);
    result.loss_nats += p.loss_nats;
  }
  const auto count = static_cast<double>(result.count);
  const auto right = static_cast<double>(result.count - result.wrong);
  result.accuracy = right / count;
  result.confidence = (of_right + of_wrong) / count;
  result.brier /= count;
  result.loss_nats /= count;
  if (result.wrong > 0) result.swagger = of_wrong / static_cast<double>(result.wrong);
  if (result.wrong > 0 && right > 0) result.swagger_gap = *result.swagger - of_right / right;
  result.bins = equal_width(predictions, bins);
  result.adaptive_bins = equal_mass(predictions, bins);
  result.ece = expected_error(result.bins, count);
  result.adaptive_ece = expected_error(result.adaptive_bins, count);
  for (const Bin& bin : result.bins)
    result.mce = std::max(result.mce, std::abs(bin.accuracy - bin.confidence));
  return result;
}

Choice choose(std::span<const float> logits, std::size_t answer) {
  return choose_of(logits, answer);
}
Choice choose(std::span<const double> logits, std::size_t answer) {
  return choose_of(logits, answer);
}

Consistency consistency_of(std::span<const std::vector<int>> answers) {
  if (answers.size() < 2) throw std::invalid_argument("consistency needs two runs or more");
  const std::size_t items = answers.front().size();
  for (const std::vector<int>& run : answers) {
    if (run.size() != items || items == 0) throw std::invalid_argument("every run answers the same items");
  }
  Consistency result;
  const auto runs = static_cast<double>(answers.size());
  double equal_pairs = 0;
  for (std::size_t item = 0; item < items; ++item) {
    std::map<int, std::size_t> counts;
    for (const std::vector<int>& run : answers) ++counts[run[item]];
    std::size_t most = 0;
    for (const auto& [answer, count] : counts) {
      most = std::max(most, count);
      equal_pairs += static_cast<double>(count) * (static_cast<double>(count) - 1) / 2;
    }
    result.most_common.push_back(static_cast<double>(most) / runs);
    result.mean_most_common += result.most_common.back() / static_cast<double>(items);
    if (counts.size() > 1 && !result.first_divergence) result.first_divergence = item;
  }
  result.pairwise = equal_pairs / (runs * (runs - 1) / 2) / static_cast<double>(items);
  return result;
}

namespace {

using Json = nlohmann::ordered_json;

Item item_of(const Json& object) {
  Item item{object.at("id"), object.at("subject"), object.at("choice"), object.at("answer"), {}};
  item.prediction = {object.at("confidence"), item.choice == item.answer, object.at("loss_nats")};
  if (!(item.prediction.confidence >= 0 && item.prediction.confidence <= 1))
    throw std::invalid_argument("confidence is not between 0 and 1");
  return item;
}

}  // namespace

Calibration calibrate_items(const std::vector<Item>& items) {
  std::vector<Prediction> predictions;
  predictions.reserve(items.size());
  for (const Item& item : items) predictions.push_back(item.prediction);
  return measure_calibration(predictions);
}

std::vector<std::pair<std::string, Calibration>> calibrate_subjects(const std::vector<Item>& items) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Prediction>> by_subject;
  for (const Item& item : items) {
    if (!by_subject.contains(item.subject)) order.push_back(item.subject);
    by_subject[item.subject].push_back(item.prediction);
  }
  std::vector<std::pair<std::string, Calibration>> found;
  if (order.size() < 2) return found;
  for (const std::string& subject : order)
    found.emplace_back(subject, measure_calibration(by_subject[subject]));
  return found;
}

std::string items_text(const std::vector<ItemSet>& sets) {
  std::string text;
  for (const ItemSet& set : sets) {
    for (const Item& item : set.items) {
      text += Json{{"set", set.name},
                   {"kind", set.questions ? "questions" : "tokens"},
                   {"id", item.id},
                   {"subject", item.subject},
                   {"choice", item.choice},
                   {"answer", item.answer},
                   {"confidence", item.prediction.confidence},
                   {"loss_nats", item.prediction.loss_nats}}
                  .dump() +
              "\n";
    }
  }
  return text;
}

std::vector<ItemSet> read_items(const std::filesystem::path& path) {
  std::istringstream lines(read_file(path));
  std::vector<ItemSet> sets;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const Json object = parse_json<Json>(line);
    try {
      if (!object.is_object()) throw std::invalid_argument("it is not a JSON object");
      const std::string name = object.at("set");
      auto found = std::ranges::find(sets, name, &ItemSet::name);
      if (found == sets.end()) found = sets.insert(found, {name, object.at("kind") == "questions", {}});
      found->items.push_back(item_of(object));
    } catch (const std::exception& error) {
      throw data_error("'{}' line {} is not an item as mulligan probe calibration --items writes them: {}.",
                       path.string(), number, error.what());
    }
  }
  if (sets.empty()) throw data_error("'{}' holds no item.", path.string());
  return sets;
}

}  // namespace mulligan::calibration

#include "lab/calibration/items.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"

namespace mulligan::calibration {
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
  const std::string text = read_file(path);
  std::vector<ItemSet> sets;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
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

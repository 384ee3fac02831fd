// The forms of what ranks tell each other and what a state holds.
#include <iterator>
#include <limits>

#include "framework/core/error.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {
namespace {

constexpr const char* event_names[] = {"create", "reset",  "score", "book",     "plan",
                                       "reveal", "update", "phase", "collapse", "fallback"};

}  // namespace

const char* event_name(TttEventKind kind) {
  return event_names[static_cast<int>(kind)];
}

Json norms_json(const std::vector<AdapterNorm>& norms) {
  Json json = Json::object();
  for (const AdapterNorm& norm : norms) json[norm.name] = {{"norm", norm.norm}, {"drift", norm.drift}};
  return json;
}

double json_number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

std::vector<AdapterNorm> read_norms(const Json& json) {
  std::vector<AdapterNorm> norms;
  for (const auto& [name, norm] : json.items())
    norms.push_back({name, json_number(norm.at("norm")), json_number(norm.at("drift"))});
  return norms;
}

Json pending_json(const TttPendingBatch& batch) {
  return {{"queue", batch.queue},
          {"adapted", batch.adapted},
          {"seconds", batch.seconds},
          {"adapters", norms_json(batch.norms)}};
}

TttPendingBatch read_pending(const Json& json) {
  return {json.at("queue"), json.at("adapted"), json_number(json.at("seconds")),
          read_norms(json.at("adapters"))};
}

std::string to_text(const TttMessage& message) {
  Json batches = Json::array(), events = Json::array();
  for (const TttPendingBatch& batch : message.batches) batches.push_back(pending_json(batch));
  for (const TttMessage::Event& event : message.events) {
    events.push_back({static_cast<int>(event.kind), event.queue, event.batch_index, event.chunk,
                      event.documents, event.chosen});
  }
  return Json{{"batches", batches}, {"void", message.invalid_reason}, {"events", events}}.dump();
}

TttMessage read_ttt_message(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TttMessage message;
    for (const Json& batch : json.at("batches")) message.batches.push_back(read_pending(batch));
    message.invalid_reason = json.at("void");
    for (const Json& event : json.at("events")) {
      const int kind = event.at(0);
      if (kind < 0 || kind >= static_cast<int>(std::size(event_names))) throw run_error("event {}", kind);
      message.events.push_back({static_cast<TttEventKind>(kind), event.at(1), event.at(2), event.at(3),
                                event.at(4).get<std::vector<int>>(), event.at(5)});
    }
    return message;
  } catch (const std::exception& error) {
    throw run_error("another rank of test-time training sent what is not a message ({}).", error.what());
  }
}

}  // namespace mulligan

#include "framework/ttt/ttt_message.h"

#include <iterator>

#include "framework/core/error.h"
#include "framework/ttt/ttt_json.h"

namespace mulligan {
namespace {

constexpr const char* event_names[] = {"create", "reset", "score",    "book",    "reveal",
                                       "update", "phase", "collapse", "fallback"};

}  // namespace

const char* event_name(TttEventKind kind) {
  return event_names[static_cast<int>(kind)];
}

std::string to_text(const TttMessage& message) {
  Json batches = Json::array(), events = Json::array();
  for (const TttPendingBatch& batch : message.batches) batches.push_back(pending_json(batch));
  for (const TttMessage::Event& event : message.events) {
    events.push_back(
        {static_cast<int>(event.kind), event.queue, event.batch_index, event.chunk, event.documents});
  }
  return Json{{"batches", batches},
              {"turns", message.checks.turns},
              {"all_turns", message.checks.all_turns},
              {"scores", message.checks.scores},
              {"cuts", message.checks.cuts},
              {"proposals", message.checks.proposals},
              {"void", message.void_reason},
              {"events", events}}
      .dump();
}

TttMessage read_ttt_message(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TttMessage message;
    for (const Json& batch : json.at("batches")) message.batches.push_back(read_pending(batch));
    message.checks.turns = json.at("turns");
    message.checks.all_turns = json.at("all_turns");
    message.checks.scores = json.at("scores");
    message.checks.cuts = json.at("cuts");
    message.checks.proposals = json.at("proposals");
    message.void_reason = json.at("void");
    for (const Json& event : json.at("events")) {
      const int kind = event.at(0);
      if (kind < 0 || kind >= static_cast<int>(std::size(event_names))) throw run_error("event {}", kind);
      message.events.push_back({static_cast<TttEventKind>(kind), event.at(1), event.at(2), event.at(3),
                                event.at(4).get<std::vector<int>>()});
    }
    return message;
  } catch (const std::exception& error) {
    throw run_error("another rank of test-time training sent what is no message ({}).", error.what());
  }
}

}  // namespace mulligan

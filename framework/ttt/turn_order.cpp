#include "framework/ttt/turn_order.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {

void TurnOrder::require(bool in_order, const char* step) const {
  if (in_order) return;
  static constexpr const char* names[] = {"nothing was scored", "the chunk was scored",
                                          "the chunk was booked", "the chunk was revealed"};
  throw std::logic_error(fmt::format("test-time training out of order: {}, but so far {}", step,
                                     names[static_cast<int>(stage_)]));
}

void TurnOrder::score() {
  require(stage_ == Stage::idle, "score");
  stage_ = Stage::scored;
}

void TurnOrder::book() {
  require(stage_ == Stage::scored, "book");
  stage_ = Stage::booked;
}

void TurnOrder::reveal() {
  require(stage_ == Stage::booked, "reveal");
  stage_ = Stage::revealed;
}

void TurnOrder::update() {
  require(stage_ == Stage::revealed, "update");
}

void TurnOrder::finish() {
  require(stage_ == Stage::booked || stage_ == Stage::revealed, "finish");
  stage_ = Stage::idle;
}

}  // namespace mulligan

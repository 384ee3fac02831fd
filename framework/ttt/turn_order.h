// TurnOrder: the state machine of one chunk, score -> book -> reveal -> update.
#pragma once

namespace mulligan {

// Every part of the host that scores, books or hands out a token's weight passes through here first. A step
// out of order is a std::logic_error: the host itself is broken, so no score may be reported.
class TurnOrder {
 public:
  virtual ~TurnOrder() = default;

  // Losses of a chunk are computed with the adapters as they are.
  void score();
  // They are entered into the score book, for good.
  void book();
  // The chunk's tokens get their weights in the objective.
  void reveal();
  // The adapters take a step towards the revealed tokens; any number of times.
  void update();
  // The chunk is done.
  void finish();
  // Whether no chunk is under way, so that a base update may run.
  bool idle() const { return stage_ == Stage::idle; }

 protected:
  virtual void require(bool in_order, const char* step) const;

 private:
  enum class Stage { idle, scored, booked, revealed };
  Stage stage_ = Stage::idle;
};

}  // namespace mulligan

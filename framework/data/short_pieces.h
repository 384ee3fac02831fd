// Validation text that is put together from short pieces of it in another order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/hashed_windows.h"

namespace mulligan {

// Pieces of 10 to 32 letters are too short to say where they are from: honest text has as many letters in common with much
// other text. What tells them apart is where it ends. The longest matches around the letters of an honest passage are of
// many lengths, and some letters have a short one only: a name, a number. Of pieces they are all of about one length. So a
// passage is pieced where windows of one width that stand in the training text cover 95 % of it, and somewhat wider ones at
// least 35 % less. Only so many passages, drawn at random, are looked at.
class ShortPieces {
 public:
  // `texts`: the units (TextUnits) of the validation text. Much training text holds shorter windows of any text.
  ShortPieces(const std::vector<std::vector<std::uint8_t>>& texts, std::uint64_t training_tokens);
  // Looks through training text. May be called from several threads; their order changes nothing.
  void read(std::span<const std::uint8_t> units);
  // Of the passages that are looked at, those made of short pieces; 0 below a minimum. Those of the shortest
  // pieces, which some honest passages resemble, count from 40 % on.
  double share() const;
  std::int64_t passages() const { return static_cast<std::int64_t>(passages_.size()); }

 private:
  struct Passage {
    std::vector<std::uint8_t> units;  // with what stands around it
    std::size_t begin, end;           // the passage itself
  };
  // visit(position, which width, place in the table) of each window that is in the table.
  template <typename Visit>
  void each_known(std::span<const std::uint8_t> units, Visit&& visit) const;

  static constexpr std::size_t widths = 6;
  std::array<std::size_t, widths> width_;
  std::vector<Passage> passages_;
  WindowKeys narrow_,
      wider_;  // of the smallest width, which stays in the processor's caches, and of the others
  std::vector<std::atomic<bool>> found_;  // in training text, by place
};

}  // namespace mulligan

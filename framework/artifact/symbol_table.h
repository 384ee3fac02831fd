// Probabilities of 64 symbols that follow what was coded, as places of the arithmetic coder.
#pragma once

#include <array>
#include <cstdint>

#include "framework/artifact/rans.h"

namespace mulligan {

// Counts grow with each symbol; places are made of them anew at intervals that grow with their number, so
// that a symbol costs a look-up and an addition. Integers alone: the same on every machine.
class SymbolTable {
 public:
  static constexpr int symbols = 64;

  // Starts as if `weights` had been counted, scaled to a sum of about `strength` symbols; a sum above 0.
  void start(const std::array<std::uint32_t, symbols>& weights, std::uint32_t strength);
  bool started() const { return total_ > 0; }

  Places places(int symbol) const { return {start_[symbol], frequency_[symbol]}; }
  // The symbol that owns a place below place_count.
  int symbol_at(std::uint32_t place) const {
    int symbol = first_[place >> group_bits];
    while (place >= std::uint32_t{start_[symbol]} + frequency_[symbol]) ++symbol;
    return symbol;
  }
  void count(int symbol) {
    counts_[symbol] += increment;
    total_ += increment;
    if (--until_rebuild_ == 0) rebuild();
  }

 private:
  static constexpr std::uint32_t increment = 32;
  static constexpr int group_bits = place_bits - 6;

  void rebuild();

  std::array<std::uint32_t, symbols> counts_{};
  std::uint32_t total_ = 0, until_rebuild_ = 0;
  std::array<std::uint16_t, symbols> start_{}, frequency_{};
  std::array<std::uint8_t, (place_count >> group_bits)> first_{};  // the symbol at each 512th place
};

}  // namespace mulligan

// The arithmetic coder below the models: range asymmetric numeral systems (Duda, "Asymmetric numeral
// systems", arXiv 1311.2540, the range variant) with a state of 64 bits and words of 32.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// A symbol owns `frequency` of 2^15 places, from `start`; frequency is at least 1.
inline constexpr int place_bits = 15;
inline constexpr std::uint32_t place_count = std::uint32_t{1} << place_bits;
struct Places {
  std::uint16_t start = 0, frequency = 0;
};

// The state lies in [2^31, 2^63) between symbols; coding starts from, and decoding ends at, the lowest.
inline constexpr std::uint64_t lowest_state = std::uint64_t{1} << 31;

// Symbols are coded from the last to the first, so they are kept until finish(): blocks bound the memory.
class RansEncoder {
 public:
  void put(Places places) { pending_.push_back(places); }
  // The low `bits` (0 to 15) of value, each of probability 1/2.
  void put_bits(std::uint32_t value, int bits) {
    if (bits > 0) {
      const std::uint32_t low = value & ((1U << bits) - 1U);
      put({static_cast<std::uint16_t>(low << (place_bits - bits)),
           static_cast<std::uint16_t>(place_count >> bits)});
    }
  }
  // Appends the block: u32 count of words, little-endian, then the words; the decoder's state comes first.
  void finish(std::string& out);

 private:
  std::vector<Places> pending_;
};

// Reads one block. Whatever the bytes are, places come out or std::runtime_error is thrown.
class RansDecoder {
 public:
  RansDecoder() = default;
  // Takes the block at the front of `bytes`.
  explicit RansDecoder(std::string_view& bytes);

  std::uint32_t place() const { return static_cast<std::uint32_t>(state_) & (place_count - 1); }
  // The symbol at place() was the one with these places.
  void take(Places places) {
    state_ = places.frequency * (state_ >> place_bits) + place() - places.start;
    if (state_ < lowest_state) state_ = state_ << 32 | word();
  }
  std::uint32_t take_bits(int bits) {
    if (bits == 0) return 0;
    const std::uint32_t value = place() >> (place_bits - bits);
    take({static_cast<std::uint16_t>(value << (place_bits - bits)),
          static_cast<std::uint16_t>(place_count >> bits)});
    return value;
  }
  // Throws unless the block ends here as the encoder ended it.
  void finish() const {
    if (state_ != lowest_state || !words_.empty()) throw std::runtime_error("is corrupt");
  }

 private:
  std::uint32_t word() {
    if (words_.empty()) throw std::runtime_error("is corrupt");
    std::uint32_t value = 0;
    std::memcpy(&value, words_.data(), sizeof value);
    words_.remove_prefix(sizeof value);
    return value;
  }

  std::uint64_t state_ = lowest_state;
  std::string_view words_;
};

// Probabilities of 64 symbols that follow what was coded, as places of the arithmetic coder.

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

// NgramCounts: which token has followed each context of `length` tokens most often so far.
//
// Contexts and pairs of a context and its next token are counted under 64-bit keys, multiplication wrapping:
//   context key = XOR over j of token_j * coefficient[j], j = 0 the oldest token
//   pair key    = (context key * 1,000,003) XOR (token * coefficient[length mod 32])
// XOR is not injective, so different contexts may share a key; full keys are compared, so that what is
// counted does not depend on the size of the tables. The keys are those of the published record (its n-gram
// state in C), whose hints nothing else reproduces. (docs/record_run.md is of another record; the fixture
// `ngram_tilt` has the numbers.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::transforms {

inline constexpr std::size_t kMostTokens = 32;  // of a context
inline constexpr std::array<std::uint64_t, kMostTokens> kCoefficients = {
    36313,   27191,   51647,   81929,   131071,  196613,  262147,  393241,  524309,  655373,  786433,
    917521,  1048583, 1179653, 1310729, 1441801, 1572869, 1703941, 1835017, 1966087, 2097169, 2228243,
    2359319, 2490389, 2621471, 2752549, 2883617, 3014687, 3145757, 3276833, 3407903, 3538973};
inline constexpr std::uint64_t kPairMultiplier = 1'000'003;

// Counters under 64-bit keys: open addressing, linear probing, twice as large whenever it is three quarters
// full. A counter of 0 marks a free slot, so every key is possible.
template <typename Counter>
class CounterTable {
 public:
  CounterTable() : slots_(1024) {}

  // The counter of a key; null where it was never made.
  const Counter* find(std::uint64_t key) const {
    const Slot& slot = slots_[place(slots_, key)];
    return slot.counter.count > 0 ? &slot.counter : nullptr;
  }
  // The same, made where there is none. Its count must be raised before the next call.
  Counter& at(std::uint64_t key) {
    std::size_t i = place(slots_, key);
    if (slots_[i].counter.count == 0) {
      if (4 * (used_ + 1) > 3 * slots_.size()) {
        grow();
        i = place(slots_, key);
      }
      ++used_;
      slots_[i].key = key;
    }
    return slots_[i].counter;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Counter counter;
  };
  static std::size_t place(const std::vector<Slot>& slots, std::uint64_t key) {
    std::size_t i = (key * 0x9E3779B97F4A7C15u >> 20) & (slots.size() - 1);
    while (slots[i].counter.count > 0 && slots[i].key != key) i = (i + 1) & (slots.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.counter.count > 0) larger[place(larger, slot.key)] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t used_ = 0;
};

struct ContextCount {
  std::uint32_t count = 0;  // occurrences
  std::uint32_t top_count = 0;
  std::int32_t top_token = 0;  // of equally frequent ones the one that was first so frequent
  // Share of the top token, the quotient of fp32 numbers as in the record.
  float confidence() const { return static_cast<float>(top_count) / static_cast<float>(count); }
};

class NgramCounts {
 public:
  explicit NgramCounts(std::size_t length) : length_(length) {}

  std::size_t length() const { return length_; }
  // `tokens` are the context's, the oldest first.
  static std::uint64_t context_key(std::span<const std::int32_t> tokens) {
    std::uint64_t key = 0;
    for (std::size_t j = 0; j < tokens.size(); ++j)
      key ^= static_cast<std::uint64_t>(tokens[j]) * kCoefficients[j];
    return key;
  }
  // What followed the context; null where it has not occurred.
  const ContextCount* find(std::uint64_t context) const { return contexts_.find(context); }
  // `token` followed the context once more.
  void count(std::uint64_t context, std::int32_t token) {
    const std::uint64_t pair =
        context * kPairMultiplier ^ static_cast<std::uint64_t>(token) * kCoefficients[length_ % kMostTokens];
    const std::uint32_t times = ++pairs_.at(pair).count;
    ContextCount& counts = contexts_.at(context);
    ++counts.count;
    if (times > counts.top_count) {
      counts.top_count = times;
      counts.top_token = token;
    }
  }

 private:
  struct PairCount {
    std::uint32_t count = 0;
  };
  std::size_t length_;
  CounterTable<ContextCount> contexts_;
  CounterTable<PairCount> pairs_;
};

}  // namespace mulligan::transforms

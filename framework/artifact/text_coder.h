// Decompression of source text. Counters predict each bit from twenty contexts, and a network of two layers mixes their
// predictions. Results are a third smaller than Brotli's, at 50 kB per second both ways. The package of an evaluation
// contains this file, so it includes nothing of the tree. Arithmetic on integers and IEEE doubles is equal on all machines.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

class TextModel {
 public:
  explicit TextModel(std::uint64_t text_bytes)
      : weights_{matrix(256), matrix(32), matrix(256), matrix(2048), matrix(4096), matrix(2048)} {
    while (table_bits_ < 21 && 1u << table_bits_ < 4 * text_bytes) ++table_bits_;
    table_.resize(std::size_t{contexts} << table_bits_);
    double odds = 3.3546262790251185e-4;  // exp(-8)
    for (int& p : squash_) {
      p = static_cast<int>(65536 * odds / (1 + odds));
      odds *= 1.0039138893383475;  // exp(1 / 256)
    }
    for (int p = 0, x = 0; p < 4096; ++p) {
      while (x < 4095 && squash_[x] < p * 16 + 8) ++x;
      stretch_[p] = x - 2048;
    }
    for (std::uint32_t i = 0; i < adapted_.size(); ++i)
      adapted_[i] = static_cast<std::uint32_t>(squash_[i % 64 * 64]) << 16;
    for (auto& stage : corrections_) {
      for (std::uint32_t i = 0; i < 65536 * 33; ++i)
        stage.push_back(static_cast<std::uint16_t>(squash_[std::min(4095u, i % 33 * 128)]));
    }
    begin_byte();
  }

  // The probability that the next bit is 1, in parts of 65536.
  int predict() {
    for (int i = 0; i < contexts; ++i) {
      Counter& counter = find_counter(i);
      const int x = stretch_[counter.p >> 4], fast = stretch_[counter.fast >> 4];
      const int n = counter.n < 8 ? counter.n : 8 + std::clamp((fast - x) / 100 + 4, 0, 7);
      adapted_at_[i] = &adapted_[(i * 16 + n) * 64 + ((x + 2048) >> 6)];
      inputs_[2 * i] = counter.n ? x : 0;
      inputs_[2 * i + 1] = counter.n ? stretch_[*adapted_at_[i] >> 20] : 0;
      inputs_[2 * contexts + 2 + i] = counter.n ? fast : 0;
      inputs_[3 * contexts + 2 + i] = counter.n ? (counter.p - 32768) / 32 : 0;
    }
    expected_ = -1;
    int length = 0;
    if (match_length_ > 0 && (static_cast<std::uint8_t>(text_[match_]) | 256) >> (8 - bits_) == partial_) {
      expected_ = text_[match_] >> (7 - bits_) & 1;
      length = 1 + std::min(match_length_ < 16 ? match_length_ : 12 + match_length_ / 4, 30);
    }
    match_counter_ = &match_counters_[length];
    const int sign = expected_ < 0 ? 0 : 2 * expected_ - 1;
    inputs_[2 * contexts] = sign * stretch_[*match_counter_ >> 20];
    inputs_[2 * contexts + 1] = sign * 256;
    const int scope = scopes_.empty() ? 0 : static_cast<int>(scopes_.back() >> 23);
    const int selected[sets] = {
        partial_,          length,
        byte(1),           (kind(byte(2)) * 16 + std::min(word_length_, 15)) * 8 + bits_,
        scope * 8 + bits_, static_cast<int>(tokens_ >> 8 & 255) * 8 + bits_};
    int sum = 0;
    last_ = &last_weights_[static_cast<std::size_t>(partial_) * sets];
    for (int set = 0; set < sets; ++set) {
      used_[set] = &weights_[set][static_cast<std::size_t>(selected[set]) * inputs_.size()];
      int dot = 0;
      for (std::size_t i = 0; i < inputs_.size(); ++i) dot += inputs_[i] * (used_[set][i] >> 5);
      mixed_[set] = std::clamp(dot >> 11, -2047, 2047);
      sum += mixed_[set] * (last_[set] >> 2);
    }
    x_ = std::clamp(sum >> 14, -2047, 2047);
    const int x = x_, low = (x + 2048) >> 7, weight = (x + 2048) & 127;
    const std::uint32_t hashes[] = {static_cast<std::uint32_t>(partial_ * 256 + length),
                                    hash(recent_ & 0xffff, partial_), hash(word_, partial_)};
    int p = 2 * squash_[x + 2048];
    for (int stage = 0; stage < 3; ++stage) {
      std::uint16_t* near = &corrections_[stage][(stage ? hashes[stage] >> 16 : hashes[0]) * 33 + low];
      corrected_[stage] = near + (weight >> 6);
      p += (stage + 1) * ((near[0] * (128 - weight) + near[1] * weight) >> 7);
    }
    return std::clamp(p >> 3, 8, 65528);
  }

  void update(int bit) {
    const int target = bit ? 65535 : 0, last_error = (bit << 16) - squash_[x_ + 2048];
    if (++updates_ % 40000 == 0 && rate_ > 40) --rate_;
    for (int set = 0; set < sets; ++set) {
      const int moved = last_[set] + ((mixed_[set] * last_error + (1 << 17)) >> 18);
      last_[set] = std::clamp(moved, -(1 << 18), 1 << 18);
      const int error = ((bit << 16) - squash_[mixed_[set] + 2048]) * rate_ / 16;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const int weight = used_[set][i] + ((inputs_[i] * error + (1 << 17)) >> 18);
        used_[set][i] = std::clamp(weight, -(1 << 18), 1 << 18);
      }
    }
    for (std::uint16_t* value : corrected_) *value += (target - *value) / 50;
    for (int i = 0; i < contexts; ++i) {
      move(*adapted_at_[i], target, 127);
      Counter& counter = *counters_[i];
      counter.p += (target - counter.p) * 2 / (2 * counter.n + 3);
      counter.fast += (target - counter.fast) * 2 / (2 * std::min<int>(counter.n, 2) + 3);
      if (counter.n < 250) ++counter.n;
    }
    if (expected_ >= 0) {
      move(*match_counter_, bit == expected_ ? 65535 : 0, 254);
      if (bit != expected_) match_length_ = 0;
    }
    partial_ = partial_ * 2 + bit;
    if (++bits_ == 8) end_byte(static_cast<std::uint8_t>(partial_));
  }

 private:
  static constexpr int contexts = 20, sets = 6;
  struct Counter {
    std::uint16_t p = 32768, fast = 32768;  // over all updates and over the last few
    std::uint8_t n = 0, check = 0;
  };
  using Row = std::array<int, 4 * contexts + 2>;

  static std::vector<int> matrix(std::size_t rows) { return std::vector<int>(rows * Row().size(), 6500); }
  static std::uint32_t hash(std::uint32_t a, std::uint32_t b) {
    std::uint32_t mixed = a * 0x2F0B4C47u + b * 0x9E3779B1u + 0x1234567u;
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA6Bu;
    return mixed ^ mixed >> 13;
  }
  // A probability in the upper half and the number of updates in the lower one.
  static void move(std::uint32_t& value, int target, std::uint32_t most) {
    const std::uint32_t n = value & 0xffff;
    const int p = static_cast<int>(value >> 16), moved = p + (target - p) * 2 / static_cast<int>(2 * n + 5);
    value = static_cast<std::uint32_t>(moved) << 16 | std::min(n + 1, most);
  }
  int byte(std::size_t back) const {
    return back > text_.size() ? 0 : static_cast<std::uint8_t>(text_[text_.size() - back]);
  }

  static bool in_word(int c) { return std::isalnum(c) || c == '_'; }
  // One of eight kinds of characters.
  static int kind(int c) {
    const auto found = std::string_view(" \n(:,").find(static_cast<char>(c));
    return in_word(c) ? std::isdigit(c) > 0 : 2 + static_cast<int>(std::min<std::size_t>(found, 5));
  }
  // The last `n` tokens, of words only that they are words.
  std::uint32_t shape(int n) const {
    const std::uint64_t tokens = tokens_ << (64 - 8 * n);
    return hash(static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(tokens >> 32));
  }

  Counter& find_counter(int context) {
    const std::uint32_t wanted = hash(hashes_[context], static_cast<std::uint32_t>(partial_) * 0x3D4D51CBu);
    const auto check = static_cast<std::uint8_t>(wanted);
    const std::uint32_t slot = wanted >> (32 - table_bits_);
    Counter* first = &table_[(static_cast<std::size_t>(context) << table_bits_) + slot];
    Counter* second = &table_[(static_cast<std::size_t>(context) << table_bits_) + (slot ^ 1)];
    if (first->check != check) {
      if (second->check == check || second->n < first->n) std::swap(first, second);
      if (first->check != check) *first = {32768, 32768, 0, check};
    }
    counters_[context] = first;
    return *first;
  }

  std::uint32_t& after_word() { return after_words_[hash(last_word_, 1) >> 16]; }

  void begin_byte() {
    bits_ = 0;
    partial_ = 1;
    if (match_length_ > 0) ++match_;
    const std::uint32_t six = hash(recent_, older_ & 0xffff) >> 12;
    if (match_length_ == 0) {
      match_ = last_seen_[six];
      while (match_length_ < 40 && match_length_ < static_cast<int>(match_) &&
             text_[match_ - 1 - match_length_] == text_[text_.size() - 1 - match_length_])
        ++match_length_;
      if (match_length_ < 5) match_length_ = 0;
    }
    last_seen_[six] = text_.size();
    const std::uint32_t scope = scopes_.empty() ? 0 : scopes_.back(), pair = hash(word_, last_word_);
    // The next byte of the match and its length.
    const auto after_match = static_cast<std::uint32_t>(
        match_length_ > 0 ? static_cast<std::uint8_t>(text_[match_]) + 1 + 256 * std::min(match_length_, 15)
                          : 0);
    const auto at = static_cast<std::uint32_t>(byte(1));
    const std::uint32_t wanted[contexts] = {at,
                                            recent_ & 0xffff,
                                            recent_ & 0xffffff,
                                            recent_,
                                            hash(recent_, older_ & 0xffff),
                                            hash(word_, at),
                                            hash(pair, at),
                                            hash(pair, word_before_),
                                            hash(word_, hash(word_before_, at)),
                                            hash(word_, signs_),
                                            hash(word_, scope),
                                            hash(pair, scope),
                                            hash(recent_ & 0xffff, scope),
                                            hash(shape(8), at),
                                            hash(shape(4), at),
                                            hash(after_[recent_ & 0xffff], at),
                                            hash(after_word(), word_),
                                            hash(recent_ & 0xffffff, line_),
                                            hash(word_, line_),
                                            after_match};
    for (std::uint32_t i = 0; i < contexts; ++i) hashes_[i] = hash(wanted[i], i + 1);
  }

  void end_byte(std::uint8_t c) {
    if (match_length_ > 0) ++match_length_;
    text_ += static_cast<char>(c);
    after_[recent_ & 0xffff] = static_cast<std::uint16_t>(after_[recent_ & 0xffff] << 8 | c);
    older_ = older_ << 8 | recent_ >> 24;
    recent_ = recent_ << 8 | c;
    if (!in_word(c) || (tokens_ & 255) != 1) tokens_ = tokens_ << 8 | (in_word(c) ? 1 : c);
    if (in_word(c)) {
      word_ = hash(word_, c);
      ++word_length_;
    } else {
      if (word_) {
        after_word() = word_;
        word_before_ = last_word_;
        last_word_ = std::exchange(word_, 0);
        word_length_ = 0;
      }
      if (c != ' ') signs_ = (signs_ << 8 | c) & 0xffff;
    }
    if (c == '\n') line_ = static_cast<std::uint32_t>(text_.size());
    if (c == '(' || c == '{' || c == '[' || c == '<') scopes_.push_back(hash(c, c == '(' ? last_word_ : 0));
    if ((c == ')' || c == '}' || c == ']' || c == '>') && !scopes_.empty()) scopes_.pop_back();
    begin_byte();
  }

  std::array<int, 4096> squash_{}, stretch_{};
  int table_bits_ = 12;
  std::vector<Counter> table_;
  std::array<Counter*, contexts> counters_{};
  std::vector<std::uint32_t> adapted_ = std::vector<std::uint32_t>(contexts * 16 * 64);
  std::array<std::uint32_t*, contexts> adapted_at_{};
  std::array<std::uint32_t, contexts> hashes_{};
  Row inputs_{};
  std::vector<int> weights_[sets], last_weights_ = std::vector<int>(256 * sets, 65536 / sets);
  int *used_[sets] = {}, *last_ = nullptr;
  int mixed_[sets] = {}, x_ = 0, rate_ = 100, updates_ = 0;
  std::vector<std::uint16_t> corrections_[3];
  std::uint16_t* corrected_[3] = {};
  std::vector<std::uint32_t> match_counters_ = std::vector<std::uint32_t>(32, 1u << 31);
  std::uint32_t* match_counter_ = nullptr;
  std::vector<std::size_t> last_seen_ = std::vector<std::size_t>(1 << 20);
  std::size_t match_ = 0;
  int match_length_ = 0, expected_ = -1, bits_ = 0, partial_ = 1, word_length_ = 0;
  std::string text_;
  std::vector<std::uint32_t> scopes_;
  // What followed two bytes, the last two times; and the word that followed a word.
  std::vector<std::uint16_t> after_ = std::vector<std::uint16_t>(65536);
  std::vector<std::uint32_t> after_words_ = std::vector<std::uint32_t>(65536);
  std::uint64_t tokens_ = 0;
  std::uint32_t recent_ = 0, older_ = 0, line_ = 0, word_ = 0, last_word_ = 0, word_before_ = 0, signs_ = 0;
};

// What pack_text() packed. Throws std::runtime_error for more than `most` bytes and for a stream of another length, with a
// reason that continues the stream's name.
inline std::string unpack_text(std::string_view packed, std::uint64_t most) {
  std::size_t at = 0;
  const auto next = [&] {
    if (at == packed.size()) throw std::runtime_error("is truncated");
    return static_cast<std::uint8_t>(packed[at++]);
  };
  std::uint64_t length = 0;
  for (int i = 0; i < 4; ++i) length |= std::uint64_t{next()} << 8 * i;
  if (length > most) throw std::runtime_error("declares more bytes than a source may have");
  std::uint32_t low = 0, high = ~0u, code = 0;
  for (int i = 0; i < 4; ++i) code = code << 8 | next();
  TextModel model(length);
  std::string text;
  while (text.size() < length) {
    int c = 0;
    for (int i = 0; i < 8; ++i) {
      const auto middle =
          static_cast<std::uint32_t>(low + (std::uint64_t{high - low} * model.predict() >> 16));
      const int bit = code <= middle;
      (bit ? high : low) = middle + !bit;
      model.update(bit);
      for (; (low ^ high) >> 24 == 0; low <<= 8, high = high << 8 | 255) code = code << 8 | next();
      c = c * 2 + bit;
    }
    text += static_cast<char>(c);
  }
  if (at != packed.size()) throw std::runtime_error("has bytes too many");
  return text;
}

}  // namespace mulligan

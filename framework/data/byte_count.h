// UTF-8 bytes of a token stream, the denominator of bits per byte, by two independent routes.
//
// Route 1 (ByteTable): bytes(token | previous) = base[token] + (space[token] and not boundary[previous]);
// base is 1 for byte tokens, 0 for control, unknown and unused ones, else the piece's UTF-8 length without a
// leading "▁", every further "▁" counted as the one space it is; a boundary is a control, unknown or unused
// token. (The record's table counts 3 bytes for a further "▁"; no piece of the published tokenizers has
// one.) Route 2 (count_bytes_by_decoding): SentencePiece's decoder turns the tokens back into text, whose
// bytes are counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mulligan {

class Tokenizer;

// Bytes of the targets of a token stream. What is counted of a target does not depend on what follows it.
class ByteCounter {
 public:
  virtual ~ByteCounter() = default;
  // Equal for counters that count alike.
  virtual std::string sha256() const = 0;
  // Bytes of the target tokens[position], position >= 1. `tokens` is the stream from its beginning.
  virtual int bytes_at(std::span<const std::uint16_t> tokens, std::size_t position) const = 0;
  // Sum over the targets tokens[1..]; tokens[0] is only their context. Throws data_error for a token that the
  // counter does not know.
  virtual std::uint64_t count(std::span<const std::uint16_t> tokens) const = 0;
};

class ByteTable : public ByteCounter {
 public:
  // From look-up tables of equal length [V].
  ByteTable(std::vector<std::int32_t> base_bytes, std::vector<std::uint8_t> has_leading_space,
            std::vector<std::uint8_t> is_boundary)
      : base_bytes_(std::move(base_bytes)),
        has_leading_space_(std::move(has_leading_space)),
        is_boundary_(std::move(is_boundary)) {}
  // From a tokenizer, extended with boundary ids of 0 bytes up to `vocabulary` (0: the tokenizer's own size),
  // for models whose output is padded. Throws data_error when the tokenizer has more pieces than that.
  static ByteTable from_tokenizer(const Tokenizer& tokenizer, int vocabulary = 0);

  std::string sha256() const override;
  int vocabulary() const { return static_cast<int>(base_bytes_.size()); }

  // Bytes of target `token` after `previous`; both must be below vocabulary().
  int bytes(int previous, int token) const {
    const auto t = static_cast<std::size_t>(token);
    const bool space = has_leading_space_[t] != 0 && is_boundary_[static_cast<std::size_t>(previous)] == 0;
    return base_bytes_[t] + (space ? 1 : 0);
  }
  int bytes_at(std::span<const std::uint16_t> tokens, std::size_t position) const override {
    return bytes(tokens[position - 1], tokens[position]);
  }
  // Throws data_error for an id outside.
  std::uint64_t count(std::span<const std::uint16_t> tokens) const override;

 private:
  std::vector<std::int32_t> base_bytes_;         // [V]
  std::vector<std::uint8_t> has_leading_space_;  // [V] 0 or 1
  std::vector<std::uint8_t> is_boundary_;        // [V] 0 or 1
};

// Route 2 over the targets tokens[1..], with tokens[0] as their context; uses `threads` threads (0: all cores).
//
// SentencePiece decodes runs of text between boundary tokens. So that byte tokens which form invalid UTF-8 count 1 each (the decoder
// would print U+FFFD, 3 bytes), the token of one ASCII letter replaces each before decoding. Such a letter also stands in front of the
// run, so that the decoder drops no leading spaces. One leading space after a boundary is left out: it separates nothing.
//
// Agrees with route 1 on every stream of every tokenizer whose decoder adds and removes nothing else. Where the routes differ, no bits
// per byte may be printed.
std::uint64_t count_bytes_by_decoding(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                                      int threads = 0);

}  // namespace mulligan

#include "framework/data/byte_count.h"

#include <algorithm>
#include <atomic>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/core/sha256.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

// Bytes of tokens[begin..end) where tokens[begin - 1] is their context, by decoding with `anchor` in place of bytes.
std::uint64_t decode_range(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                           std::size_t begin, std::size_t end, int anchor) {
  // SentencePiece's decoder takes time and memory per run; a bounded run keeps both small. A cut inside a
  // document costs nothing, because every run is decoded after an anchor.
  constexpr std::size_t kMaxRun = 4096;
  std::uint64_t total = 0;
  std::vector<int> ids;
  for (std::size_t i = begin; i < end;) {
    if (tokenizer.is_textless(tokens[i])) {
      ++i;
      continue;
    }
    const bool after_boundary = tokenizer.is_textless(tokens[i - 1]);  // no text precedes it
    ids.assign(1, anchor);
    for (; i < end && ids.size() <= kMaxRun && !tokenizer.is_textless(tokens[i]); ++i)
      ids.push_back(tokenizer.is_byte(tokens[i]) ? anchor : tokens[i]);
    const std::string text = tokenizer.decode(ids);
    total += text.size() - (after_boundary && text.size() > 1 && text[1] == ' ' ? 2 : 1);
  }
  return total;
}

}  // namespace

ByteTable ByteTable::from_tokenizer(const Tokenizer& tokenizer, int vocabulary) {
  const int pieces = tokenizer.vocab_size();
  if (vocabulary == 0) vocabulary = pieces;
  data_error_if(
      vocabulary < pieces,
      "the tokenizer has {} pieces but the model's vocabulary is {}; set the vocabulary to at least that",
      pieces, vocabulary);
  const auto count = static_cast<std::size_t>(vocabulary);
  std::vector<std::int32_t> base(count, 0);
  std::vector<std::uint8_t> space(count, 0);
  std::vector<std::uint8_t> boundary(count, 1);
  for (int id = 0; id < pieces; ++id) {
    if (tokenizer.is_textless(id)) continue;
    const auto i = static_cast<std::size_t>(id);
    boundary[i] = 0;
    space[i] = !tokenizer.is_byte(id) && tokenizer.piece(id).starts_with(kSpaceMark) ? 1 : 0;
    base[i] = static_cast<std::int32_t>(tokenizer.text_of(id).size()) - space[i];
  }
  return {std::move(base), std::move(space), std::move(boundary)};
}

std::string ByteTable::sha256() const {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(base_bytes_)));
  hash.update(std::as_bytes(std::span(has_leading_space_)));
  hash.update(std::as_bytes(std::span(is_boundary_)));
  return hash.hex();
}

std::uint64_t ByteTable::count(std::span<const std::uint16_t> tokens) const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= vocabulary()) {
      throw data_error(
          "token {} at position {} is outside the vocabulary of {}; the shards were made with "
          "another tokenizer",
          tokens[i], i, vocabulary());
    }
    if (i > 0) total += static_cast<std::uint64_t>(bytes(tokens[i - 1], tokens[i]));
  }
  return total;
}

std::uint64_t count_bytes_by_decoding(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                                      int threads) {
  const int pieces = tokenizer.vocab_size();
  const auto outside =
      std::find_if(tokens.begin(), tokens.end(), [&](std::uint16_t id) { return id >= pieces; });
  if (outside != tokens.end()) {
    throw data_error("token {} is outside the tokenizer's {} pieces, so it cannot be decoded", *outside,
                     pieces);
  }
  int anchor = tokenizer.find("<0x41>");
  if (anchor < 0) anchor = tokenizer.find("A");
  if (anchor < 0)
    throw data_error(
        "bytes cannot be counted by decoding: the tokenizer has neither byte pieces nor the piece 'A'");
  if (tokens.size() < 2) return 0;
  constexpr std::size_t kBlock = 1 << 16;
  const std::size_t targets = tokens.size() - 1;
  std::atomic<std::uint64_t> total{0};
  parallel_for((targets + kBlock - 1) / kBlock, threads, [&](std::size_t block) {
    const std::size_t begin = 1 + block * kBlock;
    total += decode_range(tokenizer, tokens, begin, std::min(begin + kBlock, tokens.size()), anchor);
  });
  return total;
}

}  // namespace mulligan

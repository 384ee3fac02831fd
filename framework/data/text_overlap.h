// How much of the text that is scored stands in the text that is learned from, changed or not.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/near_copies.h"
#include "framework/data/short_pieces.h"
#include "framework/data/text_units.h"

namespace mulligan {

class Tokenizer;

// Both texts are taken as letters and digits (TextUnits) and cut into passages of 512, about 150 tokens. The
// windows of 24 in a passage, wherever they begin, are looked for in the other text by their hashes; which
// windows are compared is decided by the hash, so the order of documents and the cuts of shards play no part.
// A window that is more than twice as common as usual, on either side, is a phrase of the language or a
// notice at the head of many files, and counts neither way. Copies with many changes, or so many copies that they look like
// common phrases, are found as NearCopies, shuffled pieces as ShortPieces. Validation text of which more than
// half repeats itself is not judged: sentences of a small grammar stand in any text of that grammar.
struct TextOverlap {
  // A passage is similar where 40 % of its windows are found, or of its short ones in stretches of it
  // (NearCopies), and copied where 90 % are; with more than 134 million training tokens, which contain many
  // phrases of any text, it is similar where 70 % are. What two independent texts share stays below the
  // limits; docs/data.md has the measurements.
  static constexpr double similar_limit = 0.05, copied_limit = 0.01, training_limit = 0.25,
                          pieces_limit = 0.1;

  double similar = 0;   // of the validation text, in passages similar to training text
  double copied = 0;    // of it, in passages that stand in the training text
  double pieces = 0;    // of the passages that were looked at for it, those of short pieces (ShortPieces)
  double training = 0;  // of the training text, in passages similar to validation text
  std::int64_t passages = 0;  // of validation text that were judged; 0: too repetitive or too short
  std::int64_t training_passages = 0, pieces_passages = 0;
  std::uint64_t validation_tokens = 0, validation_read = 0;  // all, and those that were compared
  std::uint64_t training_tokens = 0, training_read = 0;
  bool operator==(const TextOverlap&) const = default;

  bool known() const { return validation_read > 0 && training_read > 0; }
  // The smallest share of validation text in the training text that is seen almost surely: the limit, unless
  // samples were read of large data.
  double seen_from() const;
  // What is beyond a limit, or beyond this share of it, by more than the chance of the draw, in words without full
  // stop; "" where nothing is.
  std::string excess(double of_limit = 1) const;
  // "1.2 % of the validation text is similar to training text, ...".
  std::string text() const;
};

nlohmann::ordered_json to_json(const TextOverlap& overlap);
// The reverse; throws what the library throws where a member is missing.
TextOverlap text_overlap_from_json(const nlohmann::ordered_json& json);

// Reads at most these many tokens of either side, spread evenly; a second of two cores, at most.
struct OverlapBudget {
  std::uint64_t training = std::uint64_t{1} << 26;
  std::uint64_t validation = std::uint64_t{1} << 22;
};

// Both sides by their shards. `tokenizer` may be null: then tokens are compared, and another tokenizer hides
// the text.
TextOverlap measure_text_overlap(const std::vector<std::filesystem::path>& training,
                                 const std::vector<std::filesystem::path>& validation,
                                 const Tokenizer* tokenizer, const OverlapBudget& budget = {});

// The comparison itself.
class OverlapMeter {
 public:
  // Where `training_tokens` are many, similar passages have more in common.
  OverlapMeter(const TextUnits& units, std::span<const std::vector<std::uint16_t>> validation,
               std::uint64_t training_tokens = 0);
  // Looks through training text. May be called from several threads; their order changes nothing.
  void read(std::span<const std::uint16_t> tokens);
  // Whether a passage of the document is similar to validation text. As above of threads.
  bool similar(std::span<const std::uint16_t> document);
  // The shares among what was read; the counts of tokens are left to the caller.
  TextOverlap result() const;

 private:
  struct Window {
    std::uint32_t scored = 0;  // times in the validation text
    std::atomic<std::uint32_t> trained{0};
    Window() = default;
  };
  // Passages of training text, and those that are similar; counts what is found where `counts`.
  std::pair<std::int64_t, std::int64_t> look_through(std::span<const std::uint16_t> tokens, bool counts);

  const TextUnits& units_;
  double similar_share_;
  std::size_t passage_;      // units
  std::uint64_t skip_ = 0;   // windows are compared whose hash has none of these bits
  bool repetitive_ = false;  // most windows stand in the validation text twice and more
  std::uint32_t usual_ = 1;  // times that a window stands in the validation text: the median
  WindowKeys keys_;
  std::vector<Window> table_;                       // by place
  std::vector<std::vector<std::size_t>> passages_;  // places of the windows of each
  std::optional<NearCopies> near_;                  // of the same passages
  std::optional<ShortPieces> pieces_;
  std::atomic<std::int64_t> training_passages_{0}, training_similar_{0};
};

}  // namespace mulligan

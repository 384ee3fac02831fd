// The measure of overlap: how much of the validation text stands in the training text.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

class Tokenizer;

// Both texts are compared as letters and digits: the order of documents, shards, capitals, white space
// and the tokenizer make no difference. A window is 24 letters long, or longer where a letter carries less than
// 2 bits, so that it carries at least 48 bits. A window that occurs twice in the validation text is a phrase or a
// notice and counts neither way.
//
// The validation text is cut into passages of 21 windows' length (504 letters), or 5 where documents are short. A
// passage is similar to training text if 40 % of its windows stand close together in one training document, and
// copied if 90 % do. docs/data.md has the shares of honest text.
struct TextOverlap {
  static constexpr int measure = 1;  // raised whenever the same texts get other shares
  static constexpr double similar_limit = 0.05, copied_limit = 0.01;

  double similar = 0, copied = 0;  // shares of the judged passages
  double duplicates = 0;       // share of all passages: whole documents that are training documents as well
  std::uint64_t passages = 0;  // judged; 0: the text is too short or repeats itself too much
  std::uint64_t validation_tokens = 0, training_tokens = 0;
  bool operator==(const TextOverlap&) const = default;

  // What exceeds its limit, or this share of it, in words without full stop; "" if nothing does. Shares of judged
  // passages exceed a limit by two standard deviations.
  std::string excess(double of_limit = 1) const;
  std::string text() const;  // "of the validation text 1.2 % stands in the training data, ..."
};

nlohmann::ordered_json to_json(const TextOverlap& overlap);
// The reverse. Throws std::exception for a missing member, a share outside [0, 1] or another measure.
TextOverlap text_overlap_from_json(const nlohmann::ordered_json& json);

// The processes that divide the reading.
struct OverlapRanks {
  int rank = 0, ranks = 1;
  std::function<std::vector<std::string>(std::string_view)>
      gather;  // every rank's bytes; unused for one rank
};

// Compares all tokens of the shards. Every rank reads its part of the training shards on all cores, and returns the
// same. `tokenizer` may be null: token ids are compared, and another tokenizer hides the text.
TextOverlap measure_text_overlap(const std::vector<std::filesystem::path>& training,
                                 const std::vector<std::filesystem::path>& validation,
                                 const Tokenizer* tokenizer, const OverlapRanks& ranks = {});

// The overlap of all tokens of the shards. It is looked up in the manifest next to the shards and in the user's cache, by
// the digests of both sets and of the tokenizer, and measured (measure_text_overlap) where it is in neither. Checks all
// shards (check_shards).
TextOverlap find_text_overlap(const std::vector<std::filesystem::path>& training,
                              const std::vector<std::filesystem::path>& validation,
                              const Tokenizer* tokenizer, const OverlapRanks& ranks = {});

// The comparison itself. A text is a sequence of units: one for a letter or a digit, two for a character of a script
// that has thousands. Case, white space, punctuation and where one token ends and the next begins leave no trace, so the
// same text in another spelling or cut by another tokenizer has the same units.
class OverlapMeter {
 public:
  // Without a tokenizer (null) nothing is known of the text, and each token is two units, its id.
  OverlapMeter(const Tokenizer* tokenizer, std::span<const std::uint16_t> validation);
  // Reads documents of training text. Returns whether one of them holds a similar passage or is a validation
  // document. May be called from several threads; their order changes nothing.
  bool read(std::span<const std::uint16_t> tokens);
  // What was found so far, for the meter of another rank.
  std::string found() const;
  void add(std::string_view found);
  TextOverlap result() const;  // without training_tokens

 private:
  struct Passage {
    std::uint32_t document = 0;
    std::uint8_t windows = 0;  // that are compared, 64 at most; 0: the passage is not judged
  };
  struct Window {
    std::uint64_t key = 0;
    std::uint32_t passage = 0;
    std::uint8_t bit = 0;  // its number in the passage
  };
  // Appends the units of `tokens` to `units`. Control tokens, and ids that the tokenizer lacks, have none.
  void append_units(std::span<const std::uint16_t> tokens, std::vector<std::uint8_t>& units) const;
  void choose_lengths(std::span<const std::uint16_t> validation);
  void add_document(std::span<const std::uint16_t> document);
  void keep_unique_windows();
  const Window* find(std::uint64_t key) const;
  bool read_document(std::span<const std::uint16_t> document, std::vector<std::uint8_t>& units);
  // Takes note of windows that were found together; returns whether they make the passage similar.
  bool note(std::uint32_t passage, std::uint64_t found);

  std::vector<std::uint32_t> begin_;  // of each id in spelled_, and the end of the last
  std::vector<std::uint8_t> spelled_;
  int bos_;
  std::size_t window_ = 0, passage_ = 0;  // units; 0: letters carry too little to be compared
  std::uint64_t skip_ = 0;                // windows are compared whose key has none of these bits
  std::uint64_t validation_tokens_;
  std::vector<Passage> passages_;
  std::vector<Window> windows_;                                     // ascending by key
  std::vector<std::uint64_t> sieve_;                                // no bit for most other keys
  std::vector<std::pair<std::uint64_t, std::uint32_t>> documents_;  // digest and number, ascending
  std::vector<std::atomic<std::uint8_t>> most_;   // by passage: windows that were found together
  std::vector<std::atomic<std::uint8_t>> whole_;  // by document: 1 if it is a training document
};

}  // namespace mulligan

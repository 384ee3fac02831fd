#include "framework/data/text_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <ranges>
#include <unordered_map>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/parallel.h"
#include "framework/core/parse_json.h"
#include "framework/core/temporary_path.h"
#include "framework/core/utf8.h"
#include "framework/data/documents.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/shard_checks.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr double window_bits = 48, letter_bits = 2;  // a letter of ordinary text carries 2 bits or more
constexpr std::size_t shortest_document = 24, sample_units = std::size_t{1} << 18;
constexpr std::size_t usual_passage = 21, short_passage = 5;              // windows' lengths
constexpr int most_windows = 64, usual_windows = 24, fewest_windows = 8;  // compared, of a passage
constexpr double similar_share = 0.4, copied_share = 0.9;
constexpr std::int64_t piece_tokens = std::int64_t{1} << 20;
constexpr std::uint64_t base = 0x9e3779b97f4a7c15;  // odd: a bijection modulo 2^64

// visit(first, key) for each window whose key has none of the bits of `skip`. Its letters alone decide whether a
// window is compared, so two texts agree.
template <typename Visit>
void each_window(std::span<const std::uint8_t> units, std::size_t width, std::uint64_t skip, Visit&& visit) {
  std::uint64_t oldest = 1, hash = 0;
  for (std::size_t i = 0; i < width; ++i) oldest *= base;
  for (std::size_t i = 0; i < units.size(); ++i) {
    hash = hash * base + units[i] + 1;
    if (i >= width) hash -= oldest * (units[i - width] + std::uint64_t{1});
    if (i + 1 < width) continue;
    std::uint64_t key = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
    key ^= key >> 32;
    if ((key & skip) == 0) visit(i + 1 - width, key);
  }
}

// visit(document) for each, from its BOS on; what precedes the first BOS is one, too.
template <typename Visit>
void each_document(std::span<const std::uint16_t> tokens, int bos, Visit&& visit) {
  while (!tokens.empty()) {
    const auto next = std::find(tokens.begin() + 1, tokens.end(), bos);
    const auto length = static_cast<std::size_t>(next - tokens.begin());
    visit(tokens.first(length));
    tokens = tokens.subspan(length);
  }
}

std::uint64_t digest_of(std::span<const std::uint16_t> document) {
  const auto* bytes = reinterpret_cast<const char*>(document.data());
  return std::hash<std::string_view>()(std::string_view(bytes, document.size() * sizeof(std::uint16_t)));
}

// Bits that a letter of the text carries: most windows of log2(letters) / bits letters occur once. At most 2, which
// ordinary text has; 0 where it is less than a quarter.
double bits_of_letter(std::span<const std::uint8_t> units) {
  const double all = std::log2(static_cast<double>(std::max<std::size_t>(units.size(), 2)));
  const auto repeats = [&](std::size_t width) {
    std::vector<std::uint64_t> keys;
    each_window(units, width, 0, [&](std::size_t, std::uint64_t key) { keys.push_back(key); });
    std::ranges::sort(keys);
    std::size_t once = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool again = (i > 0 && keys[i - 1] == keys[i]) || (i + 1 < keys.size() && keys[i + 1] == keys[i]);
      once += again ? 0 : 1;
    }
    return 2 * once < keys.size();
  };
  const auto widths = std::views::iota(std::size_t{1}, static_cast<std::size_t>(4 * all) + 1);
  const auto found = std::ranges::partition_point(widths, repeats);
  return found == widths.end() ? 0 : std::min(letter_bits, all / static_cast<double>(*found));
}

void raise_to(std::atomic<std::uint8_t>& most, std::uint8_t value) {
  std::uint8_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

// The first document that starts at token `from` or later; `from` itself if none does within a piece, so that a
// long document is cut.
std::int64_t document_start(const Shard& shard, std::int64_t from, int bos) {
  if (from == 0 || from >= shard.token_count()) return std::min(from, shard.token_count());
  return first_document(shard, bos, from, from + piece_tokens).value_or(from);
}

constexpr std::size_t stride = 16;  // more than most pieces

// Capitals of Latin-1, Greek and Cyrillic become small letters.
std::uint32_t small_letter(std::uint32_t c) {
  const bool shifted =
      (c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F);
  if (shifted) return c + 0x20;
  return c >= 0x400 && c <= 0x40F ? c + 0x50 : c;
}

// The symbols of text transforms lie at the start of the private use area.
bool is_mark(std::uint32_t c) {
  return c >= 0xE000 && c < 0xE040;
}

// Of characters beyond ASCII the bytes after the first: it says little more than the script.
void append_letters(std::string_view piece, std::vector<std::uint8_t>& units) {
  while (!piece.empty()) {
    const auto byte = static_cast<unsigned char>(piece.front());
    const std::size_t length = utf8_length(piece);
    const bool character = length == 2 || length == 3;
    const std::uint32_t c = character ? small_letter(utf8_code_point(piece, length)) : 0;
    piece.remove_prefix(character ? length : 1);
    if (character) {
      if (is_mark(c)) continue;
      if (c >= 0x800) units.push_back(static_cast<std::uint8_t>(0x80 | (c >> 6 & 0x3F)));
      units.push_back(static_cast<std::uint8_t>(0x80 | (c & 0x3F)));
      continue;
    }
    const bool capital = byte >= 'A' && byte <= 'Z';
    const bool letter = capital || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    const bool continues = byte >= 0x80 && byte < 0xC0;
    if (letter || continues) units.push_back(static_cast<std::uint8_t>(capital ? byte + 0x20 : byte));
  }
}

}  // namespace

OverlapMeter::OverlapMeter(const Tokenizer* tokenizer, std::span<const std::uint16_t> validation)
    : bos_(tokenizer ? tokenizer->bos_id() : 1), validation_tokens_(validation.size()) {
  const int known = tokenizer ? tokenizer->vocab_size() : kMaxVocabulary;
  for (int id = 0; id < kMaxVocabulary; ++id) {
    begin_.push_back(static_cast<std::uint32_t>(spelled_.size()));
    if (!tokenizer) {
      spelled_.push_back(static_cast<std::uint8_t>(id >> 8));
      spelled_.push_back(static_cast<std::uint8_t>(id & 0xFF));
    } else if (id < known) {
      append_letters(tokenizer->text_of(id), spelled_);
    }
  }
  begin_.push_back(static_cast<std::uint32_t>(spelled_.size()));
  spelled_.resize(spelled_.size() + stride);
  choose_lengths(validation);
  each_document(validation, bos_, [&](std::span<const std::uint16_t> document) { add_document(document); });
  keep_unique_windows();
  std::ranges::sort(documents_);
  most_ = std::vector<std::atomic<std::uint8_t>>(passages_.size());
  whole_ = std::vector<std::atomic<std::uint8_t>>(passages_.empty() ? 0 : passages_.back().document + 1);
}

void OverlapMeter::append_units(std::span<const std::uint16_t> tokens,
                                std::vector<std::uint8_t>& units) const {
  std::size_t at = units.size(), count = at;
  for (const std::uint16_t token : tokens) count += begin_[token + 1U] - begin_[token];
  units.resize(count +
               stride);  // a copy of fixed length is faster, and what it writes too much is overwritten
  for (const std::uint16_t token : tokens) {
    const std::uint32_t begin = begin_[token], length = begin_[token + 1U] - begin;
    std::memcpy(&units[at], &spelled_[begin], std::max<std::size_t>(length, stride));
    at += length;
  }
  units.resize(count);
}

void OverlapMeter::choose_lengths(std::span<const std::uint16_t> validation) {
  std::vector<std::uint8_t> units, sample;
  std::size_t total = 0, documents = 0;
  each_document(validation, bos_, [&](std::span<const std::uint16_t> document) {
    units.clear();
    append_units(document, units);
    const std::size_t count = std::min(units.size(), sample_units - sample.size());
    sample.insert(sample.end(), units.begin(), units.begin() + static_cast<std::ptrdiff_t>(count));
    total += units.size();
    ++documents;
  });
  const double bits = bits_of_letter(sample);
  if (bits == 0) return;
  window_ = static_cast<std::size_t>(std::ceil(window_bits / bits));
  passage_ = usual_passage * window_;
  if (total < std::max<std::size_t>(16, documents) * passage_) passage_ = short_passage * window_;
  skip_ = (std::bit_floor(passage_ / usual_windows) - 1) << 56;
}

void OverlapMeter::add_document(std::span<const std::uint16_t> document) {
  const std::uint32_t number = passages_.empty() ? 0 : passages_.back().document + 1;
  std::vector<std::uint8_t> units;
  append_units(document, units);
  if (units.size() >= shortest_document) documents_.emplace_back(digest_of(document), number);
  std::size_t first = 0;
  do {
    const auto passage = static_cast<std::uint32_t>(passages_.size());
    passages_.push_back({number, 0});
    if (window_ == 0) return;
    const std::size_t length = std::min(passage_ + window_ - 1, units.size() - first);
    each_window(std::span(units).subspan(first, length), window_, skip_, [&](std::size_t, std::uint64_t key) {
      windows_.push_back({key, passage, 0});
    });
    first += passage_;
  } while (first + passage_ / 2 <= units.size());
}

void OverlapMeter::keep_unique_windows() {
  std::vector<int> all(passages_.size());
  for (const Window& window : windows_) ++all[window.passage];
  std::ranges::sort(windows_, {}, &Window::key);
  std::size_t kept = 0;
  for (std::size_t i = 0, next = 0; i < windows_.size(); i = next) {
    while (next < windows_.size() && windows_[next].key == windows_[i].key) ++next;
    Passage& passage = passages_[windows_[i].passage];
    if (next > i + 1 || passage.windows == most_windows) continue;
    windows_[kept++] = {windows_[i].key, windows_[i].passage, passage.windows++};
  }
  windows_.resize(kept);
  for (std::size_t i = 0; i < passages_.size(); ++i) {
    if (passages_[i].windows < std::max(fewest_windows, all[i] / 4)) passages_[i].windows = 0;
  }
  sieve_.resize(std::bit_ceil(std::max<std::size_t>(windows_.size(), 2)) / 2);
  for (const Window& window : windows_)
    sieve_[window.key / 64 & (sieve_.size() - 1)] |= std::uint64_t{1} << window.key % 64;
}

const OverlapMeter::Window* OverlapMeter::find(std::uint64_t key) const {
  if ((sieve_[key / 64 & (sieve_.size() - 1)] >> key % 64 & 1) == 0) return nullptr;
  const auto found = std::ranges::lower_bound(windows_, key, {}, &Window::key);
  return found != windows_.end() && found->key == key ? &*found : nullptr;
}

bool OverlapMeter::read(std::span<const std::uint16_t> tokens) {
  bool any = false;
  std::vector<std::uint8_t> units;
  each_document(tokens, bos_, [&](std::span<const std::uint16_t> document) {
    any = read_document(document, units) || any;
  });
  return any;
}

bool OverlapMeter::read_document(std::span<const std::uint16_t> document, std::vector<std::uint8_t>& units) {
  bool any = false;
  const std::uint64_t digest = digest_of(document);
  for (auto same = std::ranges::lower_bound(documents_, std::pair(digest, std::uint32_t{0}));
       same != documents_.end() && same->first == digest; ++same) {
    whole_[same->second].store(1, std::memory_order_relaxed);
    any = true;
  }
  if (window_ == 0) return any;
  units.clear();
  append_units(document, units);
  struct Stretch {  // of the document, twice as long as a passage
    std::size_t begin = 0;
    std::uint64_t found = 0;  // windows of the passage, by their numbers
  };
  std::unordered_map<std::uint32_t, Stretch> stretches;
  each_window(units, window_, skip_, [&](std::size_t first, std::uint64_t key) {
    const Window* window = find(key);
    if (window == nullptr) return;
    Stretch& stretch = stretches[window->passage];
    if (stretch.found != 0 && first > stretch.begin + 2 * passage_) {
      any = note(window->passage, stretch.found) || any;
      stretch.found = 0;
    }
    if (stretch.found == 0) stretch.begin = first;
    stretch.found |= std::uint64_t{1} << window->bit;
  });
  for (const auto& [passage, stretch] : stretches) any = note(passage, stretch.found) || any;
  return any;
}

bool OverlapMeter::note(std::uint32_t passage, std::uint64_t found) {
  const int count = std::popcount(found);
  raise_to(most_[passage], static_cast<std::uint8_t>(count));
  return passages_[passage].windows > 0 && count >= similar_share * passages_[passage].windows;
}

std::string OverlapMeter::found() const {
  std::string bytes;
  for (const auto* list : {&most_, &whole_})
    for (const std::atomic<std::uint8_t>& value : *list) bytes += static_cast<char>(value.load());
  return bytes;
}

void OverlapMeter::add(std::string_view found) {
  if (found.size() != most_.size() + whole_.size()) throw run_error("ranks compare other validation texts");
  std::size_t at = 0;
  for (auto* list : {&most_, &whole_})
    for (std::atomic<std::uint8_t>& value : *list) raise_to(value, static_cast<std::uint8_t>(found[at++]));
}

TextOverlap OverlapMeter::result() const {
  TextOverlap overlap;
  overlap.validation_tokens = validation_tokens_;
  double similar = 0, copied = 0, whole = 0;
  for (std::size_t i = 0; i < passages_.size(); ++i) {
    const Passage& passage = passages_[i];
    whole += whole_[passage.document];
    if (passage.windows == 0) continue;
    ++overlap.passages;
    similar += most_[i] >= similar_share * passage.windows ? 1 : 0;
    copied += most_[i] >= copied_share * passage.windows ? 1 : 0;
  }
  const double judged = std::max(1.0, static_cast<double>(overlap.passages));
  overlap.similar = similar / judged;
  overlap.copied = copied / judged;
  overlap.duplicates = passages_.empty() ? 0 : whole / static_cast<double>(passages_.size());
  return overlap;
}

TextOverlap measure_text_overlap(const std::vector<fs::path>& training,
                                 const std::vector<fs::path>& validation, const Tokenizer* tokenizer,
                                 const OverlapRanks& ranks) {
  OverlapMeter meter(tokenizer, read_tokens(validation));
  const int bos = tokenizer ? tokenizer->bos_id() : 1;
  const std::vector<Shard> shards(training.begin(), training.end());
  std::vector<std::pair<const Shard*, std::int64_t>> pieces;  // a shard, and about where a piece begins
  std::uint64_t tokens = 0;
  for (const Shard& shard : shards) {
    tokens += static_cast<std::uint64_t>(shard.token_count());
    for (std::int64_t first = 0; first < shard.token_count(); first += piece_tokens)
      pieces.emplace_back(&shard, first);
  }
  const auto rank = static_cast<std::size_t>(ranks.rank), step = static_cast<std::size_t>(ranks.ranks);
  parallel_for((pieces.size() + step - 1 - rank) / step, 0, [&](std::size_t i) {
    const auto [shard, from] = pieces[i * step + rank];
    const std::int64_t begin = document_start(*shard, from, bos);
    const std::int64_t end = document_start(*shard, from + piece_tokens, bos);
    std::vector<std::uint16_t> text(static_cast<std::size_t>(end - begin));
    if (!text.empty()) shard->read(begin, text);
    meter.read(text);
  });
  if (ranks.ranks > 1)
    for (const std::string& found : ranks.gather(meter.found())) meter.add(found);
  TextOverlap overlap = meter.result();
  overlap.training_tokens = tokens;
  return overlap;
}

std::string TextOverlap::excess(double of_limit) const {
  const auto beyond = [&](double share, double limit) {
    const double chance = std::sqrt(share * (1 - share) / std::max(1.0, static_cast<double>(passages)));
    return share - 2 * chance > limit * of_limit;
  };
  const auto said = [&](double share, const char* what, double limit) {
    return fmt::format("{} of the validation text {}, more than {}", percent(share), what,
                       percent(limit * of_limit));
  };
  if (duplicates > copied_limit * of_limit)
    return said(duplicates, "stands in the training data as whole documents", copied_limit);
  if (beyond(copied, copied_limit)) return said(copied, "stands in the training data", copied_limit);
  if (beyond(similar, similar_limit))
    return said(similar, "stands in the training data with changes", similar_limit);
  return {};
}

std::string TextOverlap::text() const {
  if (passages == 0) {
    return fmt::format(
        "the validation text is too short, or repeats itself too much, to be compared with the training data; "
        "{} of it stands there as whole documents",
        percent(duplicates));
  }
  return fmt::format(
      "of the validation text {} stands in the training data, {} with changes, {} as whole documents",
      percent(copied), percent(similar), percent(duplicates));
}

template <typename Fields>
void describe(Fields& f, TextOverlap& o) {
  std::uint64_t measure = TextOverlap::measure;
  f("measure", measure)("share", o.similar)("copied", o.copied)("duplicates", o.duplicates);
  f("passages", o.passages)("validation_tokens", o.validation_tokens)("training_tokens", o.training_tokens);
}

nlohmann::ordered_json to_json(const TextOverlap& overlap) {
  return fields_to_json(overlap);
}

TextOverlap text_overlap_from_json(const nlohmann::ordered_json& json) {
  const auto overlap = fields_from_json<TextOverlap>(json);
  const bool shares = std::ranges::all_of(std::array{overlap.similar, overlap.copied, overlap.duplicates},
                                          [](double share) { return share >= 0 && share <= 1; });
  if (json.at("measure") != TextOverlap::measure || !shares)
    throw std::invalid_argument("another measure of overlap");
  return overlap;
}

namespace {

// Where the overlap of these sets is kept between runs; empty where there is no home for it.
fs::path cache_file(const ShardSetIdentity& training, const ShardSetIdentity& validation,
                    const std::string& tokenizer) {
  const fs::path folder = cache_folder("overlap");
  if (folder.empty()) return {};
  return folder / (sha256_hex(fmt::format("{} {} {} {}", TextOverlap::measure, training.sha256,
                                          validation.sha256, tokenizer)) +
                   ".json");
}

std::string listed_sha256(const SplitRecord& split) {
  std::vector<ShardIdentity> shards;
  for (const ShardRecord& shard : split.shards) shards.push_back({shard.file, shard.tokens, shard.sha256});
  return shard_set(std::move(shards)).sha256;
}

std::optional<TextOverlap> known_overlap(const ShardSetIdentity& training, const ShardSetIdentity& validation,
                                         const std::string& tokenizer, const fs::path& folder) {
  const std::optional<Manifest> manifest = find_manifest(folder);
  if (manifest && manifest->overlap && manifest->tokenizer_sha256 == tokenizer &&
      listed_sha256(manifest->train) == training.sha256 &&
      listed_sha256(manifest->validation) == validation.sha256) {
    return manifest->overlap;
  }
  const fs::path file = cache_file(training, validation, tokenizer);
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return {};
  try {
    return text_overlap_from_json(parse_json<nlohmann::ordered_json>(read_file(file, kLargestDescription)));
  } catch (const std::exception&) {  // damaged: measured again
    return {};
  }
}

void keep_overlap(const fs::path& file, const TextOverlap& overlap) {
  if (file.empty()) return;
  try {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, to_json(overlap).dump() + "\n");
  } catch (const std::exception&) {  // the next run measures again
  }
}

}  // namespace

TextOverlap find_text_overlap(const std::vector<fs::path>& training, const std::vector<fs::path>& validation,
                              const Tokenizer* tokenizer, const OverlapRanks& ranks) {
  const ShardSetIdentity trained = check_shards(training, {.split = DataSplit::train}).identity;
  const ShardSetIdentity scored = check_shards(validation, {.split = DataSplit::validation}).identity;
  const std::string digest = tokenizer ? tokenizer->sha256() : "";
  std::optional<TextOverlap> known;
  if (ranks.rank == 0) known = known_overlap(trained, scored, digest, folder_of(validation.front()));
  if (ranks.ranks > 1) {  // as rank 0 knows it
    const std::string told = ranks.gather(known ? to_json(*known).dump() : "").front();
    if (!told.empty()) known = text_overlap_from_json(parse_json<nlohmann::ordered_json>(told));
  }
  if (known) return *known;
  const TextOverlap overlap = measure_text_overlap(training, validation, tokenizer, ranks);
  if (ranks.rank == 0) keep_overlap(cache_file(trained, scored, digest), overlap);
  return overlap;
}

}  // namespace mulligan

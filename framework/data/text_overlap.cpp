#include "framework/data/text_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "framework/core/parallel.h"
#include "framework/data/hashed_windows.h"
#include "framework/data/shard.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t window_units = 24;
constexpr std::size_t usual_passage = 512, short_passage = 128;
constexpr double repetitive_share = 0.5;
constexpr double copied_share = 0.9, usual_share = 0.4, share_in_much_text = 0.7;
constexpr std::uint64_t much_text = std::uint64_t{1} << 27;  // tokens

// A place in a file that is read at once.
struct Piece {
  const Shard* shard;
  std::int64_t first, count;
};

std::uint64_t tokens_in(const std::vector<Shard>& shards) {
  std::uint64_t tokens = 0;
  for (const Shard& shard : shards) tokens += static_cast<std::uint64_t>(shard.token_count());
  return tokens;
}

// Pieces of `length` tokens of all shards, or as many as `budget` allows, spread evenly at places that nobody knows before:
// text between places that are always the same would never be seen.
std::vector<Piece> pieces_of(const std::vector<Shard>& shards, std::int64_t length, std::uint64_t budget) {
  std::vector<Piece> all;
  for (const Shard& shard : shards) {
    for (std::int64_t first = 0; first < shard.token_count(); first += length)
      all.push_back({&shard, first, std::min(length, shard.token_count() - first)});
  }
  if (tokens_in(shards) <= budget) return all;
  const std::uint64_t wanted = std::max<std::uint64_t>(1, budget / static_cast<std::uint64_t>(length));
  std::random_device unknown;
  std::vector<Piece> some;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(wanted, all.size()); ++i) {
    const std::uint64_t first = i * all.size() / wanted, last = (i + 1) * all.size() / wanted;
    some.push_back(all[std::min<std::uint64_t>(first + unknown() % std::max<std::uint64_t>(last - first, 1),
                                               all.size() - 1)]);
  }
  return some;
}

std::vector<std::uint16_t> tokens_of(const Piece& piece) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(piece.count));
  piece.shard->read(piece.first, tokens);
  return tokens;
}

std::vector<Shard> opened(const std::vector<fs::path>& files) {
  return std::vector<Shard>(files.begin(), files.end());
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

double ratio(double part, double all) {
  return all > 0 ? part / all : 0;
}

// A share of `passages`, of text of which `seen` was read, beyond `limit` by more than two deviations.
bool beyond(double share, double limit, std::int64_t passages, double seen) {
  const double expected = std::min(1.0, share * seen), count = static_cast<double>(passages);
  return count > 0 && expected - 2 * std::sqrt(expected * (1 - expected) / count) > limit * seen;
}

}  // namespace

OverlapMeter::OverlapMeter(const TextUnits& units, std::span<const std::vector<std::uint16_t>> validation,
                           std::uint64_t training_tokens)
    : units_(units), similar_share_(training_tokens > much_text ? share_in_much_text : usual_share) {
  std::vector<std::vector<std::uint8_t>> texts(validation.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    units_.append(validation[i], texts[i]);
    total += texts[i].size();
  }
  passage_ = total < 16 * usual_passage ? short_passage : usual_passage;
  const int bits = skipped_bits(total);
  skip_ = ~(~std::uint64_t{0} >> bits);
  keys_ = WindowKeys(total >> bits);
  table_ = std::vector<Window>(keys_.size());
  std::vector<std::span<const std::uint8_t>> near;
  for (const std::vector<std::uint8_t>& text : texts) {
    for (std::size_t first = 0; first < text.size(); first += passage_) {
      const std::size_t count = std::min(passage_ + window_units - 1, text.size() - first);
      if (count < passage_ / 2 && first > 0) break;  // the rest of a text
      std::vector<std::size_t>& places = passages_.emplace_back();
      near.push_back(
          std::span(text).subspan(first, std::min(count, passage_ + NearCopies::window_units - 1)));
      each_hashed_window(std::span(text).subspan(first, count), window_units, skip_,
                         [&](std::size_t, std::uint64_t key) {
                           places.push_back(keys_.add(key));
                           ++table_[places.back()].scored;
                         });
    }
  }
  near_.emplace(near, total);
  pieces_.emplace(texts, training_tokens);
  std::vector<std::uint32_t> times;
  double windows = 0, repeated = 0;
  for (const Window& window : table_) {
    if (window.scored > 0) times.push_back(window.scored);
    windows += window.scored;
    repeated += window.scored > 1 ? window.scored : 0;
  }
  usual_ = median(times);
  repetitive_ = repeated > repetitive_share * windows;
}

std::pair<std::int64_t, std::int64_t> OverlapMeter::look_through(std::span<const std::uint16_t> tokens,
                                                                 bool counts) {
  std::vector<std::uint8_t> units;
  units_.append(tokens, units);
  std::int64_t passages = 0, similar = 0;
  std::size_t at = 0, compared = 0, found = 0;
  const auto close = [&] {
    if (compared * 4 >= passage_ >> (skip_ == 0 ? 0 : std::countl_one(skip_))) {
      ++passages;
      if (static_cast<double>(found) >= similar_share_ * static_cast<double>(compared)) ++similar;
    }
    compared = found = 0;
  };
  if (counts) {
    near_->read(units);
    pieces_->read(units);
  }
  each_hashed_window(units, window_units, skip_, [&](std::size_t first, std::uint64_t key) {
    if (first / passage_ != at) {
      close();
      at = first / passage_;
    }
    ++compared;
    const std::size_t place = keys_.find(key);
    if (place == WindowKeys::none) return;
    if (counts) table_[place].trained.fetch_add(1, std::memory_order_relaxed);
    if (table_[place].scored > 2 * usual_) {
      --compared;
    } else {
      ++found;
    }
  });
  close();
  return {passages, similar};
}

void OverlapMeter::read(std::span<const std::uint16_t> tokens) {
  const auto [passages, similar] = look_through(tokens, true);
  training_passages_ += passages;
  training_similar_ += similar;
}

bool OverlapMeter::similar(std::span<const std::uint16_t> document) {
  if (repetitive_) return false;
  if (look_through(document, false).second > 0) return true;
  std::vector<std::uint8_t> units;
  units_.append(document, units);
  return near_->holds_a_passage(units, similar_share_);
}

TextOverlap OverlapMeter::result() const {
  if (repetitive_) return {};
  std::vector<std::uint32_t> times;
  for (const Window& window : table_) {
    if (window.trained > 0 && window.scored <= 2 * usual_) times.push_back(window.trained);
  }
  const std::uint32_t most = 2 * median(times);
  TextOverlap overlap;
  std::int64_t similar = 0, copied = 0;
  const std::vector<double> near = near_->shares();
  for (std::size_t i = 0; i < passages_.size(); ++i) {
    const std::vector<std::size_t>& passage = passages_[i];
    std::size_t compared = 0, found = 0;
    for (const std::size_t place : passage) {
      const Window& window = table_[place];
      if (window.scored > 2 * usual_ || window.trained > most) continue;
      ++compared;
      if (window.trained > 0) ++found;
    }
    const bool taken = near[i] >= similar_share_;
    const bool common = compared * 4 < passage.size() || compared == 0;  // little but common phrases
    if (common && !taken) continue;
    ++overlap.passages;
    const double share = common ? 0 : static_cast<double>(found) / static_cast<double>(compared);
    similar += share >= similar_share_ || taken ? 1 : 0;
    copied += share >= copied_share ? 1 : 0;
  }
  overlap.similar = ratio(static_cast<double>(similar), static_cast<double>(overlap.passages));
  overlap.copied = ratio(static_cast<double>(copied), static_cast<double>(overlap.passages));
  overlap.pieces = pieces_->share();
  overlap.pieces_passages = pieces_->passages();
  overlap.training_passages = training_passages_;
  overlap.training = ratio(static_cast<double>(training_similar_), static_cast<double>(training_passages_));
  return overlap;
}

TextOverlap measure_text_overlap(const std::vector<fs::path>& training,
                                 const std::vector<fs::path>& validation, const Tokenizer* tokenizer,
                                 const OverlapBudget& budget) {
  constexpr std::int64_t training_piece = 1 << 14, validation_piece = 1 << 12;
  const std::vector<Shard> trained = opened(training), scored = opened(validation);
  const TextUnits units(tokenizer);
  std::vector<std::vector<std::uint16_t>> texts;
  TextOverlap counts;
  counts.training_tokens = tokens_in(trained);
  counts.validation_tokens = tokens_in(scored);
  const bool all = counts.validation_tokens <= budget.validation;
  for (const Piece& piece : pieces_of(scored, all ? INT64_MAX : validation_piece, budget.validation)) {
    texts.push_back(tokens_of(piece));
    counts.validation_read += texts.back().size();
  }
  OverlapMeter meter(units, texts, counts.training_tokens);
  const std::vector<Piece> pieces = pieces_of(trained, training_piece, budget.training);
  for (const Piece& piece : pieces) counts.training_read += static_cast<std::uint64_t>(piece.count);
  parallel_for(pieces.size(), 0, [&](std::size_t i) { meter.read(tokens_of(pieces[i])); });
  TextOverlap overlap = meter.result();
  // Of a share of the other side the same share of what stands in it is found.
  const double of_training =
      ratio(static_cast<double>(counts.training_read), static_cast<double>(counts.training_tokens));
  const double of_validation =
      ratio(static_cast<double>(counts.validation_read), static_cast<double>(counts.validation_tokens));
  overlap.similar = std::min(1.0, ratio(overlap.similar, of_training));
  overlap.copied = std::min(1.0, ratio(overlap.copied, of_training));
  overlap.training = std::min(1.0, ratio(overlap.training, of_validation));
  overlap.training_tokens = counts.training_tokens;
  overlap.training_read = counts.training_read;
  overlap.validation_tokens = counts.validation_tokens;
  overlap.validation_read = counts.validation_read;
  return overlap;
}

double TextOverlap::seen_from() const {
  const double seen = ratio(static_cast<double>(training_read), static_cast<double>(training_tokens));
  double share = similar_limit;
  // Found on average so often that three deviations fewer are still beyond the limit.
  const auto sure = [&] {
    const double mean = std::min(1.0, share * seen);
    const double least = mean - 3 * std::sqrt(mean * (1 - mean) / static_cast<double>(passages));
    return beyond(ratio(least, seen), similar_limit, passages, seen);
  };
  while (share < 1 && !sure()) share *= 1.05;
  return std::min(share, 1.0);
}

std::string TextOverlap::excess(double of_limit) const {
  if (!known()) return {};
  const double seen = ratio(static_cast<double>(training_read), static_cast<double>(training_tokens));
  const double seen_back =
      ratio(static_cast<double>(validation_read), static_cast<double>(validation_tokens));
  const auto limited = [&](const char* said, double share, double limit, std::int64_t of, double part) {
    limit *= of_limit;
    if (!beyond(share, limit, of, part)) return std::string();
    return fmt::format(fmt::runtime(said), percent(share)) + fmt::format(", more than {}", percent(limit));
  };
  std::string said =
      limited("{} of the validation text stands in the training data", copied, copied_limit, passages, seen);
  if (said.empty()) {
    said = limited("{} of the validation text stands in the training data with changes", similar,
                   similar_limit, passages, seen);
  }
  if (said.empty()) {
    said = limited("{} of the validation text stands in the training data in short pieces", pieces,
                   pieces_limit, pieces_passages, 1);
  }
  if (said.empty()) {
    said = limited("{} of the training data is validation text", training, training_limit, training_passages,
                   seen_back);
  }
  return said;
}

std::string TextOverlap::text() const {
  if (!known()) return "validation and training text were not compared";
  if (passages == 0)
    return "the validation text is too short, or repeats itself too much, to be compared with the training "
           "data";
  std::string said = fmt::format(
      "of the validation text {} stands in the training data, {} with changes, {} in short pieces; of the "
      "training data {} is like validation text",
      percent(copied), percent(similar), percent(pieces), percent(training));
  if (training_read < training_tokens) {
    said += fmt::format(" (a sample: {:.3g} of {:.3g} million training tokens; {} and more would be seen)",
                        static_cast<double>(training_read) / 1e6, static_cast<double>(training_tokens) / 1e6,
                        percent(seen_from()));
  }
  return said;
}

nlohmann::ordered_json to_json(const TextOverlap& o) {
  return {{"share", o.similar},
          {"copied", o.copied},
          {"pieces", o.pieces},
          {"pieces_passages", o.pieces_passages},
          {"training", o.training},
          {"passages", o.passages},
          {"training_passages", o.training_passages},
          {"validation_tokens", o.validation_tokens},
          {"validation_read", o.validation_read},
          {"training_tokens", o.training_tokens},
          {"training_read", o.training_read}};
}

TextOverlap text_overlap_from_json(const nlohmann::ordered_json& json) {
  TextOverlap o;
  o.similar = json.at("share").get<double>();
  o.copied = json.at("copied").get<double>();
  o.pieces = json.value("pieces", 0.0);  // of programs before 2026-11-24: not measured
  o.pieces_passages = json.value("pieces_passages", std::int64_t{0});
  o.training = json.at("training").get<double>();
  o.passages = json.at("passages").get<std::int64_t>();
  o.training_passages = json.at("training_passages").get<std::int64_t>();
  o.validation_tokens = json.at("validation_tokens").get<std::uint64_t>();
  o.validation_read = json.at("validation_read").get<std::uint64_t>();
  o.training_tokens = json.at("training_tokens").get<std::uint64_t>();
  o.training_read = json.at("training_read").get<std::uint64_t>();
  return o;
}

}  // namespace mulligan

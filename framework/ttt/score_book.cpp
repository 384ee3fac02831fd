#include "framework/ttt/score_book.h"

#include <fmt/format.h>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {

void TurnOrder::require(bool in_order, const char* step) const {
  if (in_order) return;
  static constexpr const char* names[] = {"nothing was scored", "the chunk was scored",
                                          "the chunk was booked", "the chunk was revealed"};
  throw std::logic_error(fmt::format("test-time training out of order: {}, but so far {}", step,
                                     names[static_cast<int>(stage_)]));
}

void TurnOrder::score() {
  require(stage_ == Stage::idle, "score");
  stage_ = Stage::scored;
}

void TurnOrder::book() {
  require(stage_ == Stage::scored, "book");
  stage_ = Stage::booked;
}

void TurnOrder::reveal() {
  require(stage_ == Stage::booked, "reveal");
  stage_ = Stage::revealed;
}

void TurnOrder::update() {
  require(stage_ == Stage::revealed, "update");
}

void TurnOrder::finish() {
  require(stage_ == Stage::booked || stage_ == Stage::revealed, "finish");
  stage_ = Stage::idle;
}

ScoreSums& ScoreSums::operator+=(const ScoreSums& other) {
  loss_nats += other.loss_nats;
  tokens += other.tokens;
  bytes += other.bytes;
  return *this;
}

Comparison& Comparison::operator+=(const Comparison& other) {
  with += other.with;
  without += other.without;
  return *this;
}

double ScoreSums::mean_loss_nats() const {
  return loss_nats / static_cast<double>(tokens);
}

double ScoreSums::bpb() const {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss_nats / std::numbers::ln2 / static_cast<double>(bytes);
}

ScoreBook::ScoreBook(std::span<const std::uint16_t> tokens, const ByteCounter* bytes)
    : tokens_(tokens), bytes_(bytes), booked_(tokens.size()), losses_(tokens.size()) {}

std::uint64_t ScoreBook::bytes_of(std::int64_t target) const {
  if (!bytes_) return 0;
  const auto position = static_cast<std::size_t>(target);
  return static_cast<std::uint64_t>(bytes_->bytes_at(tokens_, position));
}

ScoreSums ScoreBook::score_of(std::int64_t target, float loss) const {
  return {static_cast<double>(loss), 1, bytes_of(target)};
}

void ScoreBook::enter(std::int64_t target, float loss_nats) {
  const auto position = static_cast<std::size_t>(target);
  if (target < 1 || position >= booked_.size()) throw std::logic_error("ScoreBook: no such token");
  if (booked_[position]) {
    throw std::logic_error(
        fmt::format("the token at position {} was scored twice; its first score stands", target));
  }
  if (!std::isfinite(loss_nats)) {
    throw run_error(
        "the loss of the validation token at position {} is {}; test-time "
        "training has diverged, lower ttt.optimizer.lr or raise its weight decay.",
        target, loss_nats);
  }
  booked_[position] = true;
  losses_[position] = loss_nats;
  sums_ += score_of(target, loss_nats);
}

void ScoreBook::restore(std::span<const float> losses, const ScoreSums& sums,
                        std::span<const std::pair<std::int64_t, std::int64_t>> ranges) {
  if (sums_.tokens != 0 || losses.size() != losses_.size())
    throw std::logic_error("ScoreBook: a book is restored before anything is entered, with all its losses");
  for (const auto& [first, last] : ranges) {
    for (std::int64_t target = first; target < last; ++target)
      booked_[static_cast<std::size_t>(target)] = true;
  }
  losses_.assign(losses.begin(), losses.end());
  sums_ = sums;
}

ScoreSums ScoreBook::range(std::int64_t first, std::int64_t last) const {
  for (std::int64_t target = first; target < last; ++target) {
    if (!booked(target))
      throw std::logic_error(fmt::format("the token at position {} has no score yet", target));
  }
  return range_of(losses_, first, last);
}

ScoreSums ScoreBook::range_of(std::span<const float> losses, std::int64_t first, std::int64_t last) const {
  ScoreSums sums;
  for (std::int64_t target = first; target < last; ++target)
    sums += score_of(target, losses[static_cast<std::size_t>(target)]);
  return sums;
}

Comparison ScoreBook::compare(std::span<const float> without, std::int64_t first, std::int64_t last) const {
  Comparison compared;
  for (std::int64_t target = first; target < last; ++target) {
    const float other = without[static_cast<std::size_t>(target)];
    if (std::isnan(other)) continue;
    compared += {score_of(target, loss(target)), score_of(target, other)};
  }
  return compared;
}

namespace {

constexpr const char* summed_losses_name = "ttt/losses";

}  // namespace

LossExchange::LossExchange(TensorStore& store, Communicator& communicator, std::int64_t positions)
    : store_(store), communicator_(communicator) {
  store.create(summed_losses_name, TensorType(MLG_F32, {positions}));
  sum_ = communicator.prepare(store,
                              {{Collective::all_reduce, summed_losses_name, summed_losses_name, positions}});
}

// Adding zeros changes no loss.
void LossExchange::merge(std::vector<float>& losses) {
  store_.upload(summed_losses_name, losses);
  sum_->submit();
  sum_->join();
  communicator_.finish(store_);
  losses = store_.download_as<float>(summed_losses_name);
}

}  // namespace mulligan

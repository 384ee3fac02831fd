#include "tools/doctor/order_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mulligan::doctor {
namespace {

using Pieces = std::span<const std::vector<std::uint16_t>>;

struct Counted {
  std::uint32_t pair;  // the first token in the upper half
  std::uint32_t count;
};

// The pairs of neighbours in order, each with its count.
std::vector<Counted> count_pairs(Pieces pieces) {
  std::vector<std::uint32_t> pairs;
  for (const auto& piece : pieces) {
    for (std::size_t i = 1; i < piece.size(); ++i)
      pairs.push_back(std::uint32_t{piece[i - 1]} << 16 | piece[i]);
  }
  std::ranges::sort(pairs);
  std::vector<Counted> counted;
  for (const std::uint32_t pair : pairs) {
    if (counted.empty() || counted.back().pair != pair) counted.push_back({pair, 0});
    ++counted.back().count;
  }
  return counted;
}

std::uint32_t reversed(std::uint32_t pair) {
  return pair << 16 | pair >> 16;
}

double total(const std::vector<Counted>& pairs) {
  double sum = 0;
  for (const Counted& c : pairs) sum += c.count;
  return sum;
}

// Of all couples of a pair from each side, the share that are equal.
double agreement(const std::vector<Counted>& a, const std::vector<Counted>& b) {
  double equal = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (x->pair == y->pair) equal += double(x->count) * double(y->count);
    const bool first = x->pair <= y->pair, second = y->pair <= x->pair;
    x += first;
    y += second;
  }
  return equal / std::max(1.0, total(a) * total(b));
}

}  // namespace

PairOrder pair_order(Pieces pieces, Pieces others) {
  PairOrder seen;
  const std::vector<Counted> pairs = count_pairs(pieces);
  const double n = total(pairs);
  seen.pairs = static_cast<std::uint64_t>(n);
  std::vector<double> before(65536, 0), after(65536, 0);
  double equal = 0;
  for (const Counted& c : pairs) {
    before[c.pair >> 16] += c.count;
    after[c.pair & 0xFFFF] += c.count;
    equal += double(c.count) * (double(c.count) - 1);
  }
  // Two pairs are equal by chance where both their first and their second tokens are.
  std::array<double, 2> same{};
  for (std::size_t id = 0; id < before.size(); ++id) {
    same[0] += before[id] * (before[id] - 1);
    same[1] += after[id] * (after[id] - 1);
  }
  constexpr double enough_expected = 200;  // equal couples: chance alone is then within 7 %
  const double couples = std::max(1.0, n * (n - 1)), expected = same[0] / couples * same[1];
  if (expected >= 2 * enough_expected) seen.repeated = equal / expected;
  const std::vector<Counted> other = count_pairs(others);
  if (other.empty()) return seen;
  seen.forward = agreement(pairs, other);
  std::vector<Counted> turned = other;
  for (Counted& c : turned) c.pair = reversed(c.pair);
  std::ranges::sort(turned, {}, &Counted::pair);
  seen.backward = agreement(pairs, turned);
  return seen;
}

Finding judge_order(const PairOrder& seen) {
  constexpr double least_repeated = 1.15, turned_round = 1.5;
  constexpr std::uint64_t enough_pairs = 4096;
  Finding f;
  f.id = "D37";
  f.title = "order of the training tokens";
  f.threshold = fmt::format(
      "warns where equal pairs of neighbours are below {} of what chance "
      "gives, or agree {} times better with the validation data read backwards",
      least_repeated, turned_round);
  const double turned = seen.forward > 0 ? seen.backward / seen.forward : 0;
  f.measured = fmt::format(
      "equal pairs {:.2f} times as often as by chance; pairs read backwards agree {:.2f} times as "
      "well with the validation data ({} pairs)",
      seen.repeated, turned, seen.pairs);
  if (seen.pairs < enough_pairs) return f;
  if (seen.repeated > 0 && seen.repeated < least_repeated) {
    f.message = fmt::format(
        "a token of the training data says nothing about the next one: equal pairs occur "
        "{:.2f} times as often as in tokens drawn by chance, in text 1.5 times and more",
        seen.repeated);
    f.hint =
        "decode some documents (mulligan generate, prepare --check): "
        "the ids are random or shuffled, and prepare the data again";
  } else if (turned > turned_round || (seen.forward == 0 && seen.backward > 0)) {
    f.message = fmt::format(
        "the training data read like the validation data backwards: their "
        "pairs of neighbours agree {:.1f} times better when turned round",
        turned);
    f.hint = "decode some documents of both sides and prepare the side again whose text runs backwards";
  }
  if (!f.message.empty()) f.verdict = Verdict::warn;
  return f;
}

}  // namespace mulligan::doctor

#include "tools/doctor/movement.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace mulligan::doctor {
namespace {

constexpr std::int64_t most_rows = 8192, most_width = 16, most_alone = 65536;

double rms(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * double(value);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

// One of each stretch of columns, at another place of it in each row, so that no pattern of columns is missed.
std::int64_t Sampled::column(std::size_t sample) const {
  const auto k = static_cast<std::int64_t>(sample) % width, r = static_cast<std::int64_t>(sample) / width;
  if (width == columns) return k;
  const std::int64_t from = k * columns / width, to = (k + 1) * columns / width;
  return from + (row[static_cast<std::size_t>(r)] * 7 + k * 3) % (to - from);
}

Sampled sample_of(const std::vector<float>& values, const TensorType& type) {
  Sampled s;
  s.columns = type.rank == 0 ? 1 : type.dims[static_cast<std::size_t>(type.rank - 1)];
  s.rows = s.columns == 0 ? 0 : static_cast<std::int64_t>(values.size()) / s.columns;
  s.width = std::min(s.columns, s.rows == 1 ? most_alone : most_width);
  const std::int64_t taken = std::min(s.rows, most_rows);
  for (std::int64_t i = 0; i < taken; ++i) s.row.push_back(i * s.rows / taken);
  s.values.reserve(s.row.size() * static_cast<std::size_t>(s.width));
  for (std::size_t i = 0; i < s.row.size() * static_cast<std::size_t>(s.width); ++i) {
    const std::int64_t of_row = s.row[i / static_cast<std::size_t>(s.width)];
    s.values.push_back(values[static_cast<std::size_t>(of_row * s.columns + s.column(i))]);
  }
  return s;
}

Samples sample_parameters(const std::vector<PlannedParameter>& parameters,
                          const std::function<std::vector<float>(const PlannedParameter&)>& read) {
  Samples samples;
  for (const PlannedParameter& p : parameters)
    if (p.trained()) samples[p.name()] = sample_of(read(p), p.layout.spec.type);
  return samples;
}

Finding judge_average(const Movement& m, const Samples& averaged, double decay) {
  constexpr std::int64_t least_steps = 20;
  double along = 0, whole = 0;
  for (const auto& [name, before] : m.before) {
    const auto after = m.after.find(name), mean = averaged.find(name);
    if (after == m.after.end() || mean == averaged.end()) continue;
    for (std::size_t i = 0; i < before.values.size(); ++i) {
      const double start = before.values[i], step = after->second.values[i] - start;
      along += step * (mean->second.values[i] - start);
      whole += step * step;
    }
  }
  Finding f = begin_finding(
      "D40", "averages against the weights",
      "fails where they have come less than 10 % of the way from the start to the weights, warns below 50 %");
  const double share = whole > 0 ? along / whole : 1;
  f.measured = fmt::format("{:.1f} % of the way in {} steps, ema.decay {}", 100 * share, m.steps, decay);
  if (m.steps < least_steps) return f;
  return judged(
      std::move(f), judge(share, {0.1, no_limit, 0.5}),
      fmt::format("the averages of [ema], which are scored and saved, have come {:.1f} "
                  "% of the way from the weights of the start to those after {} steps",
                  100 * share, m.steps),
      decay >= 1
          ? "ema.decay = 1 never takes a step in: set it below 1, about 1 - 10 / steps, or 0 for no averages"
          : fmt::format(
                "ema.decay = {} remembers {:.0f} steps: set it to about {:.4f} for a run of {} steps, "
                "or eval.use_ema = false",
                decay, 1 / (1 - decay), std::max(0.0, 1 - 10 / static_cast<double>(m.steps)), m.steps));
}

Finding judge_proportion(const Movement& m) {
  constexpr std::int64_t least_steps = 20;
  constexpr double growth = 10, large = 1, far = 50, away = 30;
  Finding f = begin_finding(
      "D39", "updates in proportion",
      fmt::format(
          "warns of a matrix that grew {} times and above an rms of {}, of a vector that moved by more "
          "than {}, and of matrices that moved {} times more or less than the median of their optimizer",
          growth, large, away, far));
  std::map<std::size_t, std::vector<std::pair<double, std::string>>> groups;
  std::vector<std::string> said;
  double most = 0;
  for (const PlannedParameter& p : m.parameters) {
    const auto before = m.before.find(p.name()), after = m.after.find(p.name());
    if (before == m.before.end() || after == m.after.end()) continue;
    std::vector<float> step = after->second.values;
    for (std::size_t i = 0; i < step.size(); ++i) step[i] -= before->second.values[i];
    const double from = rms(before->second.values), to = rms(after->second.values), moved = rms(step);
    most = std::max(most, to);
    const bool matrix = p.layout.spec.matrix;
    if (matrix ? (to > large && to > growth * from) : moved > away)
      said.push_back(fmt::format("{} went from an rms of {:.3g} to {:.3g}", p.name(), from, to));
    if (matrix && before->second.rows >= 16 && before->second.rows != m.vocabulary && p.lr_multiplier > 0 &&
        moved > 0 && p.layout.master == MLG_F32)
      groups[p.optimizer].emplace_back(moved / p.lr_multiplier, p.name());
  }
  f.measured = fmt::format("largest rms {:.3g} after {} steps", most, m.steps);
  if (m.steps < least_steps) return f;
  for (auto& [optimizer, moves] : groups) {
    if (moves.size() < 3) continue;
    std::ranges::sort(moves);
    const double median = moves[moves.size() / 2].first;
    for (const auto& [moved, name] : moves) {
      if (moved > far * median || moved * far < median)
        said.push_back(fmt::format("{} moved by {:.3g} where the median of its optimizer is {:.3g}", name,
                                   moved, median));
    }
  }
  if (said.empty()) return f;
  return judged(
      std::move(f), CheckOutcome::warn,
      said.front() + (said.size() > 1 ? fmt::format(" ({} more such parameters)", said.size() - 1) : ""),
      "look at the learning rate of its optimizer and at lr_multiplier in [[parameters]]");
}

namespace {

using Pieces = std::span<const std::vector<std::uint16_t>>;

// How often each pair of neighbours occurs, the first token in the upper half. Counts and sums of their products are exact.
std::unordered_map<std::uint32_t, double> count_pairs(Pieces pieces) {
  std::unordered_map<std::uint32_t, double> counts;
  for (const auto& piece : pieces) {
    for (std::size_t i = 1; i < piece.size(); ++i) ++counts[std::uint32_t{piece[i - 1]} << 16 | piece[i]];
  }
  return counts;
}

}  // namespace

PairOrder pair_order(Pieces pieces, Pieces others) {
  PairOrder seen;
  const auto other = count_pairs(others);
  const auto of_others = [&](std::uint32_t pair) {
    const auto found = other.find(pair);
    return found == other.end() ? 0 : found->second;
  };
  std::vector<double> before(65536, 0), after(65536, 0);
  double n = 0, equal = 0;
  for (const auto& [pair, count] : count_pairs(pieces)) {
    n += count;
    before[pair >> 16] += count;
    after[pair & 0xFFFF] += count;
    equal += count * (count - 1);
    seen.forward += count * of_others(pair);
    seen.backward += count * of_others(pair << 16 | pair >> 16);
  }
  seen.pairs = static_cast<std::uint64_t>(n);
  double others_in_all = 0;
  for (const auto& [pair, count] : other) others_in_all += count;
  seen.forward /= std::max(1.0, n * others_in_all);
  seen.backward /= std::max(1.0, n * others_in_all);
  // Two pairs are equal by chance where both their first and their second tokens are.
  double same_first = 0, same_second = 0;
  for (std::size_t id = 0; id < before.size(); ++id) {
    same_first += before[id] * (before[id] - 1);
    same_second += after[id] * (after[id] - 1);
  }
  constexpr double enough_expected = 200;  // equal couples: chance alone is then within 7 %
  const double expected = same_first / std::max(1.0, n * (n - 1)) * same_second;
  if (expected >= 2 * enough_expected) seen.repeated = equal / expected;
  return seen;
}

Finding judge_order(const PairOrder& seen) {
  constexpr double least_repeated = 1.15, turned_round = 1.5;
  constexpr std::uint64_t enough_pairs = 4096;
  Finding f =
      begin_finding("D37", "order of the training tokens",
                    fmt::format("warns where equal pairs of neighbours are below {} of what chance "
                                "gives, or agree {} times better with the validation data read backwards",
                                least_repeated, turned_round));
  const double turned = seen.forward > 0 ? seen.backward / seen.forward : 0;
  f.measured = fmt::format(
      "equal pairs {:.2f} times as often as by chance; pairs read backwards agree {:.2f} times as "
      "well with the validation data ({} pairs)",
      seen.repeated, turned, seen.pairs);
  if (seen.pairs < enough_pairs) return f;
  if (seen.repeated > 0 && seen.repeated < least_repeated) {
    f.note(CheckOutcome::warn,
           fmt::format("a token of the training data says nothing about the next one: equal pairs occur "
                       "{:.2f} times as often as in tokens drawn by chance, in text 1.5 times and more",
                       seen.repeated),
           "decode some documents (mulligan generate, prepare --check): "
           "the ids are random or shuffled, and prepare the data again");
  }
  if (turned > turned_round || (seen.forward == 0 && seen.backward > 0)) {
    f.note(CheckOutcome::warn,
           fmt::format("the training data read like the validation data backwards: their "
                       "pairs of neighbours agree {:.1f} times better when turned round",
                       turned),
           "decode some documents of both sides and prepare the side again whose text runs backwards");
  }
  return f;
}

}  // namespace mulligan::doctor

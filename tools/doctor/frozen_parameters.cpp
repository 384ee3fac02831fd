// D38: parameters that did not move.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/doctor/movement.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t least_steps = 20;
constexpr double still = 0.02;      // of the rows that move most
constexpr double noticed = 0.02;    // share of rows that is reported
constexpr double large = 0.25;      // and that fails
constexpr double tokens_seen = 30;  // of a token whose row is to have moved
constexpr std::size_t least_rows = 16;

// The steps of a sample's elements.
std::vector<double> steps_of(const Sampled& before, const Sampled& after) {
  std::vector<double> steps(before.values.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i] = double(after.values[i]) - double(before.values[i]);
  return steps;
}

// Samples of a row or of a stretch of columns.
struct Part {
  std::size_t first, stride, count;
  std::size_t at(std::size_t i) const { return first + i * stride; }
};

// Whether elements shrank by one factor alone, as weight decay without a gradient makes them.
bool only_decayed(const Sampled& before, const std::vector<double>& steps, const Part& part) {
  double squares = 0, along = 0, whole = 0;
  for (std::size_t i = 0; i < part.count; ++i) {
    const double w = before.values[part.at(i)], step = steps[part.at(i)];
    squares += w * w;
    along += w * step;
    whole += step * step;
  }
  constexpr std::size_t enough = 12;
  if (part.count < enough || squares == 0 || along >= 0 || -along > squares) return false;
  const double rest = whole - along * along / squares;
  return rest < 1e-3 * whole;
}

// Parts that moved less than the others.
struct Frozen {
  std::size_t frozen = 0, judged = 0, first = 0, last = 0;
  double share() const { return judged == 0 ? 0 : double(frozen) / double(judged); }
};

// skip(number) leaves a part out.
template <typename Skip>
Frozen frozen_among(const std::vector<Part>& parts, const Sampled& before, const std::vector<double>& steps,
                    bool exact_alone, Skip skip) {
  std::vector<double> moved;
  for (const Part& part : parts) {
    double squares = 0;
    for (std::size_t i = 0; i < part.count; ++i) squares += steps[part.at(i)] * steps[part.at(i)];
    moved.push_back(std::sqrt(squares / double(part.count)));
  }
  std::vector<double> sorted = moved;
  std::ranges::sort(sorted);
  const double usual = sorted[parts.size() * 9 / 10];
  Frozen found;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (skip(part)) continue;
    ++found.judged;
    if (moved[part] != 0 &&
        (exact_alone || (moved[part] >= still * usual && !only_decayed(before, steps, parts[part]))))
      continue;
    if (found.frozen++ == 0) found.first = part;
    found.last = part;
  }
  return found;
}

struct Told {
  double share;
  std::string sentence;
};

Told look_at(const PlannedParameter& p, const Movement& m) {
  const Sampled &before = m.before.at(p.name()), &after = m.after.at(p.name());
  const std::vector<double> steps = steps_of(before, after);
  if (std::ranges::all_of(steps, [](double step) { return step == 0; }))
    return {1, fmt::format("{} is as it was before", p.name())};
  // Vectors often begin with one number and move by one number.
  if (p.layout.spec.matrix && only_decayed(before, steps, {0, 1, steps.size()}))
    return {1, fmt::format("{} was moved by weight decay alone", p.name())};
  if (!p.layout.spec.matrix || p.layout.master != MLG_F32 || before.row.size() < least_rows) return {0, ""};
  const bool by_token = before.rows == m.vocabulary;
  const auto width = static_cast<std::size_t>(before.width), rows = before.row.size();
  std::vector<Part> of_rows, of_columns;
  for (std::size_t r = 0; r < rows; ++r) of_rows.push_back({r * width, 1, width});
  for (std::size_t k = 0; k < width; ++k) of_columns.push_back({k, width, rows});
  // A gradient reaches the row of a token that occurs; how far it moves depends on how often.
  const auto rare = [&](std::size_t r) {
    const auto token = static_cast<std::size_t>(before.row[r]);
    return by_token && (token >= m.expected.size() || m.expected[token] < tokens_seen);
  };
  const Frozen frozen = frozen_among(of_rows, before, steps, by_token, rare);
  if (frozen.judged >= least_rows && frozen.share() >= noticed) {
    return {frozen.share(),
            fmt::format("{:.0f} % of the rows of {} {} (between rows {} and {} of {})", 100 * frozen.share(),
                        p.name(), by_token ? "did not move" : "hardly moved", before.row[frozen.first],
                        before.row[frozen.last], before.rows)};
  }
  if (by_token || width < 8) return {0, ""};
  const Frozen columns = frozen_among(of_columns, before, steps, false, [](std::size_t) { return false; });
  if (columns.frozen > 0) {
    return {columns.share(),
            fmt::format("{:.0f} % of the columns of {} hardly moved (between columns {} and {} of {})",
                        100 * columns.share(), p.name(), before.column(columns.first),
                        before.column(columns.last), before.columns)};
  }
  const double zero = double(std::ranges::count(steps, 0.0)) / double(steps.size());
  if (zero < 0.05) return {0, ""};
  return {zero,
          fmt::format("{:.0f} % of the elements of {}, here and there, did not move", 100 * zero, p.name())};
}

}  // namespace

Finding find_frozen_parameters(const Movement& m) {
  Finding f = begin_finding(
      "D38", "parameters that did not move",
      fmt::format("warns of any and of {} % of a matrix's rows, columns or elements, fails from {} % on",
                  100 * noticed, 100 * large));
  std::vector<Told> told;
  std::size_t looked_at = 0;
  for (std::size_t group = 0; group < m.rates.size(); ++group) {
    if (m.rates[group] != 0) continue;
    told.push_back({1, fmt::format("the learning rate of [optimizer.{}] is 0", m.optimizers[group])});
  }
  for (const PlannedParameter& p : m.parameters) {
    if (!p.trained() || p.lr_multiplier == 0 || !m.before.contains(p.name()) || !m.after.contains(p.name()))
      continue;
    if (p.optimizer < m.rates.size() && m.rates[p.optimizer] == 0) continue;  // told above
    ++looked_at;
    if (Told one = look_at(p, m); !one.sentence.empty()) told.push_back(std::move(one));
  }
  f.measured = fmt::format("{} of {} parameters in {} steps", told.size(), looked_at, m.steps);
  if (m.steps < least_steps || told.empty()) return f;
  std::ranges::stable_sort(told, std::ranges::greater(), &Told::share);
  f.verdict = told.front().share >= large ? CheckOutcome::fail : CheckOutcome::warn;
  f.message = fmt::format("in {} steps {}", m.steps, told.front().sentence);
  constexpr std::size_t most_named = 4;
  for (std::size_t i = 1; i < std::min(told.size(), most_named); ++i) f.message += "; " + told[i].sentence;
  if (told.size() > most_named) f.message += fmt::format("; and {} more", told.size() - most_named);
  f.hint =
      "look at their rows in [[parameters]], their learning rate, the optimizer "
      "(mulligan plugins check) and the gradients (doctor --stage train); "
      "for what is to stay set optimizer = \"none\" or lr_multiplier = 0";
  return f;
}

}  // namespace mulligan::doctor

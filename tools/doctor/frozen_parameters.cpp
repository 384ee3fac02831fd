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

// Whether elements shrank by one factor alone, as weight decay without a gradient makes them.
template <typename Places>
bool only_decayed(const Sampled& before, const std::vector<double>& steps, const Places& places) {
  double squares = 0, along = 0, whole = 0;
  std::size_t count = 0;
  for (const std::size_t i : places) {
    const double w = before.values[i];
    squares += w * w;
    along += w * steps[i];
    whole += steps[i] * steps[i];
    ++count;
  }
  constexpr std::size_t enough = 12;
  if (count < enough || squares == 0 || along >= 0 || -along > squares) return false;
  const double rest = whole - along * along / squares;
  return rest < 1e-3 * whole;
}

// Parts of a matrix (rows, or stretches of columns) that moved less than the others.
struct Parts {
  std::size_t frozen = 0, judged = 0, first = 0, last = 0;
  double share() const { return judged == 0 ? 0 : double(frozen) / double(judged); }
};

// places(part) are the samples of a part; skip(part) leaves one out.
template <typename PlacesOf, typename Skip>
Parts frozen_parts(std::size_t count, const Sampled& before, const std::vector<double>& steps,
                   bool exact_alone, PlacesOf places_of, Skip skip) {
  std::vector<double> moved(count, 0);
  for (std::size_t part = 0; part < count; ++part) {
    const auto places = places_of(part);
    for (const std::size_t i : places) moved[part] += steps[i] * steps[i];
    moved[part] = std::sqrt(moved[part] / double(places.size()));
  }
  std::vector<double> sorted = moved;
  std::ranges::sort(sorted);
  const double usual = sorted[count * 9 / 10];
  Parts found;
  for (std::size_t part = 0; part < count; ++part) {
    if (skip(part)) continue;
    ++found.judged;
    const bool frozen =
        moved[part] == 0 ||
        (!exact_alone && (moved[part] < still * usual || only_decayed(before, steps, places_of(part))));
    if (!frozen) continue;
    if (found.frozen == 0) found.first = part;
    found.last = part;
    ++found.frozen;
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
  std::vector<std::size_t> all(steps.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (std::ranges::all_of(steps, [](double step) { return step == 0; }))
    return {1, fmt::format("{} is as it was before", p.name())};
  // Vectors often begin with one number and move by one number.
  if (p.layout.spec.matrix && only_decayed(before, steps, all))
    return {1, fmt::format("{} was moved by weight decay alone", p.name())};
  if (!p.layout.spec.matrix || p.layout.master != MLG_F32 || before.row.size() < least_rows) return {0, ""};
  const bool by_token = before.rows == m.vocabulary;
  const auto width = static_cast<std::size_t>(before.width), rows = before.row.size();
  const auto of_row = [=](std::size_t r) {
    std::vector<std::size_t> places;
    for (std::size_t k = 0; k < width; ++k) places.push_back(r * width + k);
    return places;
  };
  // A gradient reaches the row of a token that occurs; how far it moves depends on how often.
  const auto rare = [&](std::size_t r) {
    const auto token = static_cast<std::size_t>(before.row[r]);
    return by_token && (token >= m.expected.size() || m.expected[token] < tokens_seen);
  };
  const Parts frozen = frozen_parts(rows, before, steps, by_token, of_row, rare);
  if (frozen.judged >= least_rows && frozen.share() >= noticed) {
    return {frozen.share(),
            fmt::format("{:.0f} % of the rows of {} {} (between rows {} and {} of {})", 100 * frozen.share(),
                        p.name(), by_token ? "did not move" : "hardly moved", before.row[frozen.first],
                        before.row[frozen.last], before.rows)};
  }
  if (by_token || width < 8) return {0, ""};
  const auto of_stretch = [=](std::size_t k) {
    std::vector<std::size_t> places;
    for (std::size_t r = 0; r < rows; ++r) places.push_back(r * width + k);
    return places;
  };
  const Parts columns =
      frozen_parts(width, before, steps, false, of_stretch, [](std::size_t) { return false; });
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

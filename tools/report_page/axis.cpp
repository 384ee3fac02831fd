#include "tools/report_page/chart.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

namespace mulligan::report {
namespace {

constexpr double largest = 1e100;       // beyond, values are not part of a picture
constexpr double smallest_span = 1e-9;  // relative to the values; below, they count as one

// Enough digits to tell ticks `step` apart; k, M or G where the largest one on the axis is that large.
std::string tick_text(double value, double step, double largest_tick) {
  const char* suffix = "";
  for (const auto& [size, name] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
    if (largest_tick < 10 * size || step < size / 1000) continue;
    if (value == 0) return "0";
    value /= size;
    step /= size;
    suffix = name;
    break;
  }
  if (std::abs(value) > 1e15 || (value != 0 && std::abs(value) < 1e-4)) return fmt::format("{:.3g}", value);
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value, decimals, suffix);
}

}  // namespace

Axis::Axis(double low, double high, bool logarithmic) : low_(low), high_(high), logarithmic_(logarithmic) {}

Axis Axis::around(const std::vector<double>& values, bool logarithmic, double margin) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || std::abs(value) > largest || (logarithmic && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return logarithmic ? Axis(1, 10, true) : Axis(0, 1);
  if (logarithmic) {
    if (high <= low * (1 + smallest_span)) return {low / 2, high * 2, true};
    const double room = std::pow(high / low, margin);
    return {low / room, high * room, true};
  }
  if (high - low <= smallest_span * std::max(std::abs(low), std::abs(high))) {
    const double room = low == 0 ? 1 : std::abs(low) / 10;
    return {low - room, high + room};
  }
  const double room = (high - low) * margin;
  return {low - room, high + room};
}

double Axis::place(double value) const {
  if (!std::isfinite(value) || (logarithmic_ && value <= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (logarithmic_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

std::vector<Tick> Axis::ticks(int count) const {
  return logarithmic_ ? logarithmic_ticks(count) : linear_ticks(count);
}

std::vector<Tick> Axis::linear_ticks(int count) const {
  const double wished = (high_ - low_) / count, power = std::pow(10.0, std::floor(std::log10(wished)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power < wished * 0.7) continue;
    step = factor * power;
    break;
  }
  std::vector<Tick> ticks;
  const double slack = (high_ - low_) * 1e-9;
  const double first = std::ceil((low_ - slack) / step), last = std::floor((high_ + slack) / step);
  for (double number = first; number <= last; ++number) {
    const double value = number * step + 0.0;  // no minus zero
    ticks.push_back({value, tick_text(value, step, std::max(std::abs(first), std::abs(last)) * step)});
  }
  return ticks;
}

std::vector<Tick> Axis::logarithmic_ticks(int count) const {
  const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
  const double decades = std::log10(high_ / low_);
  if (decades < 0.7) return linear_ticks(count);  // less than from 1 to 5
  const bool between = decades < count / 2.0;
  const double stride = std::max(1.0, std::ceil(decades / count));
  std::vector<Tick> ticks;
  for (double exponent = first; exponent <= last; exponent += stride) {
    const double power = std::pow(10.0, exponent);
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !between) break;
      const double value = factor * power;
      const double inside = place(value);
      if (inside >= -1e-9 && inside <= 1 + 1e-9) ticks.push_back({value, tick_text(value, power, value)});
    }
  }
  return ticks;
}

namespace {

// The points [first, last) in at most three: lowest, highest, gap.
void add_bucket(const std::vector<Point>& points, std::size_t first, std::size_t last,
                std::vector<Point>& thinned) {
  const std::size_t none = points.size();
  std::size_t lowest = none, highest = none, gap = none;
  for (std::size_t i = first; i < last; ++i) {
    if (!std::isfinite(points[i].y)) {
      gap = i;
      continue;
    }
    if (lowest == none || points[i].y < points[lowest].y) lowest = i;
    if (highest == none || points[i].y > points[highest].y) highest = i;
  }
  std::vector<std::size_t> kept;
  for (const std::size_t index : {lowest, highest, gap}) {
    if (index != none && std::ranges::find(kept, index) == kept.end()) kept.push_back(index);
  }
  std::ranges::sort(kept);
  for (const std::size_t index : kept) thinned.push_back(points[index]);
}

}  // namespace

std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  const double low = points.front().x, span = points.back().x - low;
  const std::size_t buckets = limit / 2;
  const auto bucket_of = [&](const Point& point) {
    const double share = span > 0 ? (point.x - low) / span : 0;
    return std::min(buckets - 1, static_cast<std::size_t>(share * static_cast<double>(buckets)));
  };
  std::vector<Point> thinned;
  for (std::size_t first = 0; first < points.size();) {
    const std::size_t bucket = bucket_of(points[first]);
    std::size_t last = first;
    while (last < points.size() && bucket_of(points[last]) == bucket) ++last;
    add_bucket(points, first, last, thinned);
    first = last;
  }
  return thinned;
}

}  // namespace mulligan::report

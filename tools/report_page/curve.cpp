#include "tools/report_page/curve.h"

#include <algorithm>
#include <cmath>

namespace mulligan::report {
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

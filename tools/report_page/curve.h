// Points of a curve, thinned out to what can be drawn.
#pragma once

#include <cstddef>
#include <vector>

namespace mulligan::report {

struct Point {
  double x = 0;
  double y = 0;  // not finite: a gap
};

inline constexpr std::size_t curve_points = 1000;

// At most about `limit` (>= 4) points in which every spike is still seen: the x range is cut into equal
// buckets, of each of which the lowest and the highest point stay, in their order, and a gap where the bucket
// has one. Few points stay as they are. Precondition: x ascending and finite.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit = curve_points);

}  // namespace mulligan::report

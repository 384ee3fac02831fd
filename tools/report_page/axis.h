// An axis of a drawn chart: which values it spans, where a value lies on it, which values carry a label.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mulligan::report {

struct Tick {
  double value = 0;
  std::string text;
};

class Axis {
 public:
  // Spans the finite ones of `values` (of a logarithmic axis: the positive ones); without any, 0..1 or 1..10.
  // Values beyond 1e100 count as not finite. `margin` is added at both ends as a share of the span; a span of
  // one value gets some room around it.
  static Axis around(const std::vector<double>& values, bool logarithmic, double margin);
  // Precondition: low < high, both finite; of a logarithmic axis, 0 < low.
  Axis(double low, double high, bool logarithmic = false);

  double low() const { return low_; }
  double high() const { return high_; }
  bool logarithmic() const { return logarithmic_; }
  // 0 at the low end, 1 at the high end; outside of that for values outside. NaN where the axis has no place
  // for `value`: it is not finite, or not positive on a logarithmic axis.
  double place(double value) const;
  // Round values in ascending order, about `count` (>= 2) of them, all on the axis: multiples of 1, 2 or 5
  // times a power of ten; on a logarithmic axis powers of ten, with 2 and 5 between them if needed.
  std::vector<Tick> ticks(int count) const;

 private:
  std::vector<Tick> linear_ticks(int count) const;
  std::vector<Tick> logarithmic_ticks(int count) const;

  double low_;
  double high_;
  bool logarithmic_;
};

// Points of a curve, thinned out to what can be drawn.
struct Point {
  double x = 0;
  double y = 0;  // not finite: a gap
};

inline constexpr std::size_t curve_points = 1000;

// At most about `limit` (>= 4) points in which every spike is still seen: the x range is cut into equal
// buckets, of each of which the lowest and the highest point stay, in their order, and a gap where the bucket
// has one. A small number of points stays as it is. Precondition: x ascending and finite.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit = curve_points);

}  // namespace mulligan::report

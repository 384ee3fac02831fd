// Charts as HTML: drawings in SVG that stretch with the page, and all text next to them in HTML.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mulligan::report {

struct Tick {
  double value = 0;
  std::string text;
};

// An axis of a chart: low < high, both finite; of a logarithmic axis 0 < low.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;

  // Spans the finite values up to 1e100, and of a logarithmic axis the positive ones. Without such values it spans
  // 0..1 or 1..10. Both ends get `margin`, a share of the span.
  static Axis around(const std::vector<double>& values, bool logarithmic, double margin);
  // 0 at the low end, 1 at the high end. NaN for a value that is not finite, or not positive on a logarithmic axis.
  double place(double value) const;
  // About `count` (>= 2) round values in ascending order: multiples of 1, 2 or 5 times a power of ten.
  std::vector<Tick> ticks(int count) const;
};

struct Point {
  double x = 0;
  double y = 0;  // not finite: a gap
};

inline constexpr std::size_t curve_points = 1000;

// About `limit` (>= 4) points at most. The x range is cut into equal pieces; each keeps its lowest point, its highest
// point and a gap, so spikes stay visible. Precondition: x ascending and finite.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit = curve_points);

enum class Stroke { solid, dashed, faint, dots, band };  // band: the area inside of the points

struct Curve {
  std::string name;
  std::vector<Point> points;  // in any order; points without a finite x are left out
  std::size_t colour = 0;     // number in the palette, which repeats
  Stroke stroke = Stroke::solid;
  std::vector<std::string> hover = {};  // of dots: the text of each point under the pointer
};

// A vertical line. Marks of one name share an entry of the legend.
struct Mark {
  double x = 0;
  std::string what;
};

struct LineChart {
  std::string id;  // of the page's element
  std::string title;
  std::string about;  // a sentence below the title; may be empty
  std::string x_label;
  std::string y_label;
  bool logarithmic = false;
  std::vector<Curve> curves = {};
  std::vector<Mark> marks = {};
};

inline constexpr std::size_t palette_size = 7;

// The legend says which curves have no value.
std::string draw(const LineChart& chart);

struct Bar {
  std::string label;
  double value = 0;                  // not finite: no bar
  std::string text;                  // the value as text
  std::optional<double> limit = {};  // drawn as a line across the bar; a longer bar gets another colour
};

// One row per bar. All bars share one scale, which holds zero.
struct BarChart {
  std::string id;
  std::string title;
  std::string about;
  std::vector<Bar> bars = {};
};
// "" without bars.
std::string draw(const BarChart& chart);

}  // namespace mulligan::report

// A chart of curves as HTML: the curves in one SVG that stretches with the page, all text next to it in HTML,
// so that it keeps its size on narrow and wide pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report_page/axis.h"

namespace mulligan::report {

enum class Stroke { solid, dashed, faint, dots, band };  // band: the area inside of the points

struct Curve {
  std::string name;
  std::vector<Point> points;  // any order; those without a finite x are left out
  std::size_t colour = 0;     // number of the palette, which begins anew after its end
  Stroke stroke = Stroke::solid;
  std::vector<std::string> hover = {};  // of dots: what the pointer over each shows
};

// A vertical line.
struct Mark {
  double x = 0;
  std::string what;  // one entry of the legend for all marks of that name
};

struct LineChart {
  std::string id;  // of the page's element
  std::string title;
  std::string about;  // a sentence below the title; may be empty
  std::string x_label;
  std::string y_label;
  bool logarithmic = false;
  std::vector<Curve> curves;
  std::vector<Mark> marks;
};

inline constexpr std::size_t palette_size = 7;

// Curves without a single point on the axes are named in the legend as empty.
std::string draw(const LineChart& chart);

// An entry of a legend: a short stroke of that colour, and a name.
std::string legend_entry(std::size_t colour, Stroke stroke, std::string_view name);

}  // namespace mulligan::report

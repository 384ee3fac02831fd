// Bars as HTML: one row per value, drawn in SVG, with its label and its figure as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mulligan::report {

struct Bar {
  std::string label;
  double value = 0;             // not finite: no bar
  std::string text;             // the figure as it is read
  std::optional<double> limit;  // drawn as a line across the bar; a bar beyond it is drawn as one
};

struct BarChart {
  std::string id;
  std::string title;
  std::string about;
  std::vector<Bar> bars;  // one scale for all, which holds zero
};
std::string draw(const BarChart& chart);

// One bar made of parts, with a legend of their figures.
struct StackedBar {
  std::string id;
  std::string title;
  std::string about;
  struct Part {
    std::string label;
    double value = 0;  // >= 0
    std::string text;
  };
  std::vector<Part> parts;
};
std::string draw(const StackedBar& bar);

}  // namespace mulligan::report

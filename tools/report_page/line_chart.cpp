#include "tools/report_page/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report_page/axis.h"
#include "tools/report_page/html.h"

namespace mulligan::report {
namespace {

constexpr double extent = 1000;  // of the drawing in its own units, both ways

// Drawings never leave the plot, whatever the value.
double coordinate(double place) {
  return std::clamp(place, 0.0, 1.0) * extent;
}

std::vector<Point> drawable(const Curve& curve) {
  std::vector<Point> points;
  for (const Point& point : curve.points) {
    if (std::isfinite(point.x)) points.push_back(point);
  }
  std::ranges::stable_sort(points, {}, &Point::x);
  return thin(points);
}

// Straight lines between points; a point alone between gaps becomes a dot, dots are dots everywhere.
std::string path_data(const std::vector<Point>& points, bool dots, const Axis& x, const Axis& y) {
  std::string data;
  bool open = false, alone = false;
  const auto close = [&] {
    if (alone) data += "h0";
    open = alone = false;
  };
  for (const Point& point : points) {
    const double across = x.place(point.x), up = y.place(point.y);
    if (!std::isfinite(across) || !std::isfinite(up)) {
      close();
      continue;
    }
    alone = !open || dots;
    data += fmt::format("{}{:.1f} {:.1f}", alone ? 'M' : 'L', coordinate(across), coordinate(1 - up));
    if (dots) data += "h0";
    open = true;
  }
  if (!dots) close();
  return data;
}

const char* stroke_class(Stroke stroke) {
  switch (stroke) {
    case Stroke::dashed:
      return "dashed";
    case Stroke::faint:
      return "faint";
    case Stroke::dots:
      return "dots";
    case Stroke::band:
      return "band";
    case Stroke::solid:
      break;
  }
  return "solid";
}

std::string path_element(std::size_t colour, Stroke stroke, std::string_view data, std::string_view name) {
  return fmt::format("<path class=\"{}{} c{}\" d=\"{}\"{}/>", stroke == Stroke::band ? "" : "curve ",
                     stroke_class(stroke), colour % palette_size, data,
                     name.empty() ? "" : fmt::format(" data-name=\"{}\"", escape(name)));
}

// A dot for each point, with its text under the pointer.
std::string told_dots(const Curve& curve, const Axis& x, const Axis& y) {
  std::string html;
  for (std::size_t i = 0; i < curve.hover.size(); ++i) {
    html += fmt::format("<path class=\"told dots c{}\" d=\"{}\"><title>{}</title></path>",
                        curve.colour % palette_size, path_data({curve.points[i]}, true, x, y),
                        escape(curve.hover[i]));
  }
  return html;
}

std::string grid(const std::vector<Tick>& x_ticks, const std::vector<Tick>& y_ticks, const Axis& x,
                 const Axis& y) {
  std::string data;
  for (const Tick& tick : x_ticks)
    data += fmt::format("M{:.1f} 0V{}", coordinate(x.place(tick.value)), extent);
  for (const Tick& tick : y_ticks) {
    data += fmt::format("M0 {:.1f}H{}", coordinate(1 - y.place(tick.value)), extent);
  }
  return fmt::format("<path class=\"grid\" d=\"{}\"/>", data);
}

std::string labels(const std::vector<Tick>& x_ticks, const std::vector<Tick>& y_ticks, const Axis& x,
                   const Axis& y) {
  std::string html;
  for (const Tick& tick : y_ticks) {
    html += fmt::format("<span class=\"y tick\" style=\"top:{:.2f}%\">{}</span>",
                        100 * (1 - y.place(tick.value)), tick.text);
  }
  for (const Tick& tick : x_ticks) {
    html += fmt::format("<span class=\"x tick\" style=\"left:{:.2f}%\">{}</span>", 100 * x.place(tick.value),
                        tick.text);
  }
  return html;
}

struct MarkLegend {
  std::vector<std::string> names;  // in order of first appearance
  std::size_t number(const std::string& name) {
    const auto found = std::ranges::find(names, name);
    const auto place = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return place;
  }
};

}  // namespace

std::string legend_entry(std::size_t colour, Stroke stroke, std::string_view name) {
  return fmt::format("<span class=\"entry\"><svg class=\"key\" viewBox=\"0 0 20 10\">{}</svg>{}</span>",
                     path_element(colour, stroke, stroke == Stroke::dots ? "M10 5h0" : "M0 5H20", ""),
                     escape(name));
}

std::string draw(const LineChart& chart) {
  std::vector<std::vector<Point>> curves;
  std::vector<double> xs, ys;
  for (const Curve& curve : chart.curves) {
    curves.push_back(drawable(curve));
    for (const Point& point : curves.back()) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  const Axis x = Axis::around(xs, false, 0), y = Axis::around(ys, chart.logarithmic, 0.04);
  const std::vector<Tick> x_ticks = x.ticks(5), y_ticks = y.ticks(5);

  std::string drawing = grid(x_ticks, y_ticks, x, y), legend;
  MarkLegend mark_legend;
  std::string mark_paths;
  for (const Mark& mark : chart.marks) {
    const double place = x.place(mark.x);
    if (!(place >= 0 && place <= 1)) continue;
    mark_paths += fmt::format("<path class=\"mark m{}\" d=\"M{:.1f} 0V{}\"/>",
                              mark_legend.number(mark.what) % 3, coordinate(place), extent);
  }
  drawing += mark_paths;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    // A line needs two points to be seen.
    const bool single =
        std::ranges::count_if(curves[i], [](const Point& p) { return std::isfinite(p.y); }) == 1;
    const Stroke stroke = single ? Stroke::dots : curve.stroke;
    const std::string data = path_data(curves[i], stroke == Stroke::dots, x, y);
    if (!curve.hover.empty()) {
      drawing += told_dots(curve, x, y);
      legend += legend_entry(curve.colour, Stroke::dots, curve.name);
      continue;
    }
    // Dots are joined, so that a validation every thousand steps reads as a curve too.
    if (stroke == Stroke::dots && !single) {
      drawing += fmt::format("<path class=\"joint c{}\" d=\"{}\"/>", curve.colour % palette_size,
                             path_data(curves[i], false, x, y));
    }
    if (!data.empty()) drawing += path_element(curve.colour, stroke, data, curve.name);
    legend += legend_entry(curve.colour, stroke, data.empty() ? curve.name + " (no values)" : curve.name);
  }
  for (std::size_t i = 0; i < mark_legend.names.size(); ++i) {
    legend += fmt::format(
        "<span class=\"entry\"><svg class=\"key\" viewBox=\"0 0 20 10\"><path class=\"mark m{}\" d=\"M10 "
        "0V10\"/></svg>{}</span>",
        i % 3, escape(mark_legend.names[i]));
  }
  const std::string about =
      chart.about.empty() ? "" : fmt::format("<span class=\"about\">{}</span>", escape(chart.about));
  return fmt::format(
      "<figure class=\"chart\" id=\"{0}\"><figcaption><b>{1}</b> <span "
      "class=\"unit\">{2}</span>{3}</figcaption>\n"
      "<div class=\"plot\" data-x=\"{4:.17g} {5:.17g}\" data-y=\"{6:.17g} {7:.17g} {8}\" data-xlabel=\"{9}\">"
      "<svg class=\"drawing\" role=\"img\" aria-label=\"{1}, {2} by {9}\" viewBox=\"0 0 1000 1000\" "
      "preserveAspectRatio=\"none\">{10}</svg>{11}</div>\n<div class=\"x-label\">{9}</div>"
      "<div class=\"legend\">{12}</div></figure>\n",
      escape(chart.id), escape(chart.title), escape(chart.y_label), about, x.low(), x.high(), y.low(),
      y.high(), y.logarithmic() ? "log" : "linear", escape(chart.x_label), drawing,
      labels(x_ticks, y_ticks, x, y), legend);
}

}  // namespace mulligan::report

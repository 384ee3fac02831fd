#include "tools/report_page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string key(const std::string& path, std::string_view name) {
  return fmt::format("<span class=\"entry\"><svg class=\"key\" viewBox=\"0 0 20 10\">{}</svg>{}</span>", path,
                     escape(name));
}

std::string figure(const std::string& id, const std::string& title, const std::string& unit,
                   const std::string& about, const std::string& body) {
  const auto span = [](const char* css_class, const std::string& text) {
    return text.empty() ? "" : fmt::format(" <span class=\"{}\">{}</span>", css_class, escape(text));
  };
  return fmt::format(
      "<figure class=\"chart\" id=\"{}\"><figcaption><b>{}</b>{}{}</figcaption>\n{}</figure>\n", escape(id),
      escape(title), span("unit", unit), span("about", about), body);
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
      legend += key(path_element(curve.colour, Stroke::dots, "M10 5h0", ""), curve.name);
      continue;
    }
    // Dots are joined, so that a validation every thousand steps reads as a curve too.
    if (stroke == Stroke::dots && !single) {
      drawing += fmt::format("<path class=\"joint c{}\" d=\"{}\"/>", curve.colour % palette_size,
                             path_data(curves[i], false, x, y));
    }
    if (!data.empty()) drawing += path_element(curve.colour, stroke, data, curve.name);
    legend += key(path_element(curve.colour, stroke, stroke == Stroke::dots ? "M10 5h0" : "M0 5H20", ""),
                  data.empty() ? curve.name + " (no values)" : curve.name);
  }
  for (std::size_t i = 0; i < mark_legend.names.size(); ++i) {
    legend += key(fmt::format("<path class=\"mark m{}\" d=\"M10 0V10\"/>", i % 3), mark_legend.names[i]);
  }
  return figure(
      chart.id, chart.title, chart.y_label, chart.about,
      fmt::format(
          "<div class=\"plot\" data-x=\"{:.17g} {:.17g}\" data-y=\"{:.17g} {:.17g} {}\" data-xlabel=\"{}\">"
          "<svg class=\"drawing\" role=\"img\" aria-label=\"{}, {} by {}\" viewBox=\"0 0 1000 1000\" "
          "preserveAspectRatio=\"none\">{}</svg>{}</div>\n<div class=\"x-label\">{}</div>"
          "<div class=\"legend\">{}</div>",
          x.low(), x.high(), y.low(), y.high(), y.logarithmic() ? "log" : "linear", escape(chart.x_label),
          escape(chart.title), escape(chart.y_label), escape(chart.x_label), drawing,
          labels(x_ticks, y_ticks, x, y), escape(chart.x_label), legend));
}

std::string draw(const BarChart& chart) {
  double low = 0, high = 0;
  for (const Bar& bar : chart.bars) {
    for (const double value : {bar.value, bar.limit.value_or(0)}) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low == high) high = 1;
  const auto place = [&](double value) { return (value - low) / (high - low) * extent; };
  std::string body;
  for (const Bar& bar : chart.bars) {
    std::string paths;
    if (std::isfinite(bar.value)) {
      const char* colour = bar.limit && bar.value > *bar.limit ? "beyond" : bar.value < 0 ? "f1" : "f0";
      const double left = place(std::min(bar.value, 0.0)), right = place(std::max(bar.value, 0.0));
      paths = fmt::format("<path class=\"bar {}\" d=\"M{:.1f} 0H{:.1f}V10H{:.1f}Z\"/>", colour, left, right,
                          left);
    }
    if (bar.limit && std::isfinite(*bar.limit)) {
      // A line at the very end would be cut in half.
      paths +=
          fmt::format("<path class=\"limit\" d=\"M{:.1f} 0V10\"/>", std::min(place(*bar.limit), extent - 2));
    }
    body += fmt::format(
        "<span class=\"label\">{}</span><svg class=\"row\" role=\"img\" aria-label=\"{}: {}\" viewBox=\"0 0 1000 10\" "
        "preserveAspectRatio=\"none\"><path class=\"grid\" d=\"M0 10H1000\"/>{}</svg><span "
        "class=\"value\">{}</span>\n",
        escape(bar.label), escape(bar.label), escape(bar.text), paths, escape(bar.text));
  }
  return figure(chart.id, chart.title, "", chart.about, "<div class=\"bars\">" + body + "</div>");
}

}  // namespace mulligan::report

#include "tools/report_page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tools/report_page/html.h"

namespace mulligan::report {
namespace {

constexpr double largest = 1e100;       // beyond, values are not part of a picture
constexpr double smallest_span = 1e-9;  // relative to the values; below, they count as one
constexpr double extent = 1000;         // of the drawing in its own units, both ways

std::vector<Tick> even_ticks(double low, double high, int count) {
  const double wished = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(wished)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= wished * 0.7) step = factor * power;
  }
  std::vector<Tick> ticks;
  const double slack = (high - low) * 1e-9;
  const double first = std::ceil((low - slack) / step), last = std::floor((high + slack) / step);
  for (double number = first; number <= last; ++number) {
    const double value = number * step + 0.0;  // no minus zero
    ticks.push_back({value, fmt::format("{:.7g}", value)});
  }
  return ticks;
}

}  // namespace

Axis Axis::around(const std::vector<double>& values, bool logarithmic, double margin) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || std::abs(value) > largest || (logarithmic && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return logarithmic ? Axis{1, 10, true} : Axis{};
  if (logarithmic) {
    const double room = high <= low * (1 + smallest_span) ? 2 : std::pow(high / low, margin);
    return {low / room, high * room, true};
  }
  const bool one_value = high - low <= smallest_span * std::max(std::abs(low), std::abs(high));
  const double room = !one_value ? (high - low) * margin : low == 0 ? 1 : std::abs(low) / 10;
  return {low - room, high + room};
}

double Axis::place(double value) const {
  if (!std::isfinite(value) || (logarithmic && value <= 0)) return std::numeric_limits<double>::quiet_NaN();
  return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

std::vector<Tick> Axis::ticks(int count) const {
  const double decades = logarithmic ? std::log10(high / low) : 0;
  if (decades < 0.7) return even_ticks(low, high, count);  // less than from 1 to 5
  const double last = std::ceil(std::log10(high)), stride = std::max(1.0, std::ceil(decades / count));
  std::vector<Tick> ticks;
  for (double exponent = std::floor(std::log10(low)); exponent <= last; exponent += stride) {
    const double power = std::pow(10.0, exponent);
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades >= count / 2.0) break;
      const double value = factor * power, inside = place(value);
      if (inside >= -1e-9 && inside <= 1 + 1e-9) ticks.push_back({value, fmt::format("{:.7g}", value)});
    }
  }
  return ticks;
}

std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  const double from = points.front().x, span = points.back().x - from;
  const std::size_t buckets = limit / 2, none = points.size();
  const auto bucket_of = [&](const Point& point) {
    const double share = span > 0 ? (point.x - from) / span : 0;
    return std::min(buckets - 1, static_cast<std::size_t>(share * static_cast<double>(buckets)));
  };
  std::vector<Point> thinned;
  for (std::size_t i = 0; i < points.size();) {
    const std::size_t bucket = bucket_of(points[i]);
    std::size_t lowest = none, highest = none, gap = none;
    for (; i < points.size() && bucket_of(points[i]) == bucket; ++i) {
      const double y = points[i].y;
      if (!std::isfinite(y)) {
        gap = i;
        continue;
      }
      if (lowest == none || y < points[lowest].y) lowest = i;
      if (highest == none || y > points[highest].y) highest = i;
    }
    for (const std::size_t kept : std::set{lowest, highest, gap}) {
      if (kept != none) thinned.push_back(points[kept]);
    }
  }
  return thinned;
}

namespace {

// Drawings never leave the plot, whatever the value.
double coordinate(double place) {
  return std::clamp(place, 0.0, 1.0) * extent;
}

std::vector<Point> drawable(std::vector<Point> points) {
  std::erase_if(points, [](const Point& point) { return !std::isfinite(point.x); });
  std::ranges::stable_sort(points, {}, &Point::x);
  return thin(points);
}

// Straight lines between points; a point alone between gaps becomes a dot, dots are dots everywhere.
std::string path_data(const std::vector<Point>& points, bool dots, const Axis& x, const Axis& y) {
  std::string data;
  bool open = false, alone = false;
  for (const Point& point : points) {
    const double across = x.place(point.x), up = y.place(point.y);
    if (!std::isfinite(across) || !std::isfinite(up)) {
      if (alone && !dots) data += "h0";
      open = alone = false;
      continue;
    }
    alone = !open || dots;
    data += fmt::format("{}{:.1f} {:.1f}{}", alone ? 'M' : 'L', coordinate(across), coordinate(1 - up),
                        dots ? "h0" : "");
    open = true;
  }
  return alone && !dots ? data + "h0" : data;
}

std::string path_element(std::size_t colour, Stroke stroke, std::string_view data, std::string_view name) {
  constexpr const char* classes[] = {"curve solid", "curve dashed", "curve faint", "curve dots", "band"};
  return fmt::format("<path class=\"{} c{}\" d=\"{}\"{}/>", classes[static_cast<std::size_t>(stroke)],
                     colour % palette_size, data,
                     name.empty() ? "" : fmt::format(" data-name=\"{}\"", escape(name)));
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

}  // namespace

std::string draw(const LineChart& chart) {
  std::vector<std::vector<Point>> curves;
  std::vector<double> xs, ys;
  for (const Curve& curve : chart.curves) {
    for (const Point& point : curves.emplace_back(drawable(curve.points))) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  const Axis x = Axis::around(xs, false, 0), y = Axis::around(ys, chart.logarithmic, 0.04);
  std::string grid_x, grid_y, labels_x, labels_y, legend, drawing;
  for (const Tick& tick : x.ticks(5)) {
    grid_x += fmt::format("M{:.1f} 0V{}", coordinate(x.place(tick.value)), extent);
    labels_x += fmt::format("<span class=\"x tick\" style=\"left:{:.2f}%\">{}</span>",
                            100 * x.place(tick.value), tick.text);
  }
  for (const Tick& tick : y.ticks(5)) {
    grid_y += fmt::format("M0 {:.1f}H{}", coordinate(1 - y.place(tick.value)), extent);
    labels_y += fmt::format("<span class=\"y tick\" style=\"top:{:.2f}%\">{}</span>",
                            100 * (1 - y.place(tick.value)), tick.text);
  }
  std::vector<std::string> mark_names;
  for (const Mark& mark : chart.marks) {
    const double place = x.place(mark.x);
    if (!(place >= 0 && place <= 1)) continue;
    const auto number = std::ranges::find(mark_names, mark.what) - mark_names.begin();
    if (number == std::ssize(mark_names)) mark_names.push_back(mark.what);
    drawing +=
        fmt::format("<path class=\"mark m{}\" d=\"M{:.1f} 0V{}\"/>", number % 3, coordinate(place), extent);
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    // A line needs two points to be seen.
    const bool single =
        std::ranges::count_if(curves[i], [](const Point& p) { return std::isfinite(p.y); }) == 1;
    const Stroke stroke = single ? Stroke::dots : curve.stroke;
    const bool dots = stroke == Stroke::dots || !curve.hover.empty();
    const std::string data = path_data(curves[i], dots, x, y);
    legend += key(path_element(curve.colour, dots ? Stroke::dots : stroke, dots ? "M10 5h0" : "M0 5H20", ""),
                  data.empty() ? curve.name + " (no values)" : curve.name);
    for (std::size_t h = 0; h < curve.hover.size(); ++h) {  // a dot for each point, with its text
      drawing += fmt::format("<path class=\"told dots c{}\" d=\"{}\"><title>{}</title></path>",
                             curve.colour % palette_size, path_data({curve.points[h]}, true, x, y),
                             escape(curve.hover[h]));
    }
    if (!curve.hover.empty() || data.empty()) continue;
    // Dots are joined, so that a validation every thousand steps reads as a curve too.
    if (dots && !single) {
      drawing += fmt::format("<path class=\"joint c{}\" d=\"{}\"/>", curve.colour % palette_size,
                             path_data(curves[i], false, x, y));
    }
    drawing += path_element(curve.colour, stroke, data, curve.name);
  }
  for (std::size_t i = 0; i < mark_names.size(); ++i)
    legend += key(fmt::format("<path class=\"mark m{}\" d=\"M10 0V10\"/>", i % 3), mark_names[i]);
  return figure(
      chart.id, chart.title, chart.y_label, chart.about,
      fmt::format(
          "<div class=\"plot\" data-x=\"{:.17g} {:.17g}\" data-y=\"{:.17g} {:.17g} {}\" data-xlabel=\"{}\">"
          "<svg class=\"drawing\" role=\"img\" aria-label=\"{}, {} by {}\" viewBox=\"0 0 1000 1000\" "
          "preserveAspectRatio=\"none\"><path class=\"grid\" d=\"{}{}\"/>{}</svg>{}{}</div>\n"
          "<div class=\"x-label\">{}</div><div class=\"legend\">{}</div>",
          x.low, x.high, y.low, y.high, y.logarithmic ? "log" : "linear", escape(chart.x_label),
          escape(chart.title), escape(chart.y_label), escape(chart.x_label), grid_x, grid_y, drawing,
          labels_y, labels_x, escape(chart.x_label), legend));
}

std::string draw(const BarChart& chart) {
  if (chart.bars.empty()) return {};
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
      paths = fmt::format("<path class=\"bar {0}\" d=\"M{1:.1f} 0H{2:.1f}V10H{1:.1f}Z\"/>", colour,
                          place(std::min(bar.value, 0.0)), place(std::max(bar.value, 0.0)));
    }
    if (bar.limit && std::isfinite(*bar.limit)) {  // a line at the very end would be cut in half
      paths +=
          fmt::format("<path class=\"limit\" d=\"M{:.1f} 0V10\"/>", std::min(place(*bar.limit), extent - 2));
    }
    body += fmt::format(
        "<span class=\"label\">{0}</span><svg class=\"row\" role=\"img\" aria-label=\"{0}: {1}\" "
        "viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\"><path class=\"grid\" d=\"M0 10H1000\"/>{2}</svg>"
        "<span class=\"value\">{1}</span>\n",
        escape(bar.label), escape(bar.text), paths);
  }
  return figure(chart.id, chart.title, "", chart.about, "<div class=\"bars\">" + body + "</div>");
}

}  // namespace mulligan::report

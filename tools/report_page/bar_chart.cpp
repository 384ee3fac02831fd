#include "tools/report_page/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report_page/html.h"
#include "tools/report_page/line_chart.h"

namespace mulligan::report {
namespace {

constexpr double row_extent = 1000;  // of a row's drawing, across

std::string figure(const std::string& id, const std::string& title, const std::string& about,
                   const std::string& body) {
  const std::string text = about.empty() ? "" : fmt::format("<span class=\"about\">{}</span>", escape(about));
  return fmt::format(
      "<figure class=\"chart\" id=\"{}\"><figcaption><b>{}</b>{}</figcaption>\n<div class=\"bars\">{}</div>"
      "</figure>\n",
      escape(id), escape(title), text, body);
}

std::string rectangle(double left, double right, const std::string& css_class) {
  return fmt::format("<path class=\"bar {}\" d=\"M{:.1f} 0H{:.1f}V10H{:.1f}Z\"/>", css_class, left, right,
                     left);
}

std::string drawing(const std::string& label, const std::string& paths) {
  return fmt::format(
      "<svg class=\"row\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 1000 10\" "
      "preserveAspectRatio=\"none\"><path class=\"grid\" d=\"M0 10H1000\"/>{}</svg>",
      escape(label), paths);
}

}  // namespace

std::string draw(const BarChart& chart) {
  double low = 0, high = 0;
  const auto hold = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const Bar& bar : chart.bars) {
    hold(bar.value);
    if (bar.limit) hold(*bar.limit);
  }
  if (low == high) high = 1;
  const auto place = [&](double value) { return (value - low) / (high - low) * row_extent; };
  std::string body;
  for (const Bar& bar : chart.bars) {
    std::string paths;
    if (std::isfinite(bar.value)) {
      const bool beyond = bar.limit && bar.value > *bar.limit;
      paths = rectangle(place(std::min(bar.value, 0.0)), place(std::max(bar.value, 0.0)),
                        beyond          ? "beyond"
                        : bar.value < 0 ? "f1"
                                        : "f0");
    }
    if (bar.limit && std::isfinite(*bar.limit)) {
      // A line at the very end would be cut in half.
      const double at = std::min(place(*bar.limit), row_extent - 2);
      paths += fmt::format("<path class=\"limit\" d=\"M{0:.1f} 0V10\"/>", at);
    }
    body += fmt::format("<span class=\"label\">{}</span>{}<span class=\"value\">{}</span>\n",
                        escape(bar.label), drawing(bar.label + ": " + bar.text, paths), escape(bar.text));
  }
  return figure(chart.id, chart.title, chart.about, body);
}

std::string draw(const StackedBar& bar) {
  double total = 0;
  for (const StackedBar::Part& part : bar.parts) total += part.value;
  if (total <= 0) total = 1;
  std::string paths, legend;
  double sum = 0;
  for (std::size_t i = 0; i < bar.parts.size(); ++i) {
    const StackedBar::Part& part = bar.parts[i];
    const double left = sum / total * row_extent;
    sum += part.value;
    paths += rectangle(left, sum / total * row_extent, fmt::format("f{}", i % palette_size));
    legend += fmt::format(
        "<span class=\"entry\"><svg class=\"key\" viewBox=\"0 0 20 10\"><path class=\"bar f{}\" "
        "d=\"M0 0H20V10H0Z\"/></svg>{} <b>{}</b></span>",
        i % palette_size, escape(part.label), escape(part.text));
  }
  return figure(bar.id, bar.title, bar.about,
                fmt::format("<div class=\"stacked\">{}</div><div class=\"legend\">{}</div>",
                            drawing(bar.title, paths), legend));
}

}  // namespace mulligan::report

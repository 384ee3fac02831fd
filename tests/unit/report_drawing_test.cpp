// Axes, thinning, units and the drawn charts of reports.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "framework/core/printable.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"

namespace mulligan::report::report_drawing_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string tick_texts(const Axis& axis, int count) {
  std::string texts;
  for (const Tick& tick : axis.ticks(count)) texts += (texts.empty() ? "" : " ") + tick.text;
  return texts;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A chart of one curve.
LineChart chart_of(std::vector<Point> points, bool logarithmic = false) {
  LineChart chart{"c", "title", "", "step", "unit", logarithmic, {}, {}};
  chart.curves.push_back({"curve", std::move(points), 0, Stroke::solid});
  return chart;
}

// The path data of the chart's curves, in order.
std::vector<std::string> paths(const std::string& html) {
  std::vector<std::string> data;
  const std::string drawing = html.substr(0, html.find("</svg>"));
  for (std::size_t at = drawing.find("\"curve "); at != std::string::npos;
       at = drawing.find("\"curve ", at + 1)) {
    const std::size_t start = drawing.find("d=\"", at) + 3;
    data.push_back(drawing.substr(start, drawing.find('"', start) - start));
  }
  return data;
}

TEST(Axis, TicksAreRoundAndOnTheAxis) {
  EXPECT_EQ(tick_texts({0, 1}, 5), "0 0.2 0.4 0.6 0.8 1");
  EXPECT_EQ(tick_texts({2.71, 7.63}, 5), "3 4 5 6 7");
  EXPECT_EQ(tick_texts({0, 1395}, 5), "0 200 400 600 800 1000 1200");
  EXPECT_EQ(tick_texts({-0.0004, 0.02}, 5), "0 0.005 0.01 0.015 0.02");  // no "-0"
  EXPECT_EQ(tick_texts({-0.002, 0.001}, 3), "-0.002 -0.001 0 0.001");
  for (const auto& [low, high] : {std::pair{1e-9, 3e-9}, {-5e7, 1e8}, {1.0, 1.0001}, {1e12, 1e12 + 4}}) {
    const Axis axis{low, high};
    const std::vector<Tick> ticks = axis.ticks(5);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 11u);
    for (const Tick& tick : ticks) {
      EXPECT_GE(axis.place(tick.value), -1e-6);
      EXPECT_LE(axis.place(tick.value), 1 + 1e-6);
    }
  }
}

TEST(Axis, LogarithmicTicks) {
  EXPECT_EQ(tick_texts({0.1, 100, true}, 5), "0.1 1 10 100");
  EXPECT_EQ(tick_texts({0.9, 21, true}, 5), "1 2 5 10 20");
  EXPECT_EQ(tick_texts({2, 3, true}, 5), "2 2.2 2.4 2.6 2.8 3");  // less than a decade: even steps
  EXPECT_LE((Axis{1e-300, 1e300, true}).ticks(5).size(), 8u);
  EXPECT_DOUBLE_EQ((Axis{1, 100, true}).place(10), 0.5);
  EXPECT_TRUE(std::isnan((Axis{1, 100, true}).place(0)));
}

TEST(Axis, SpansTheFiniteValues) {
  const Axis axis = Axis::around({nan, 2, infinity, 4, -infinity, 1e200}, false, 0);
  EXPECT_EQ(axis.low, 2);
  EXPECT_EQ(axis.high, 4);
  EXPECT_EQ(Axis::around({0, -3, 1, 100}, true, 0).low, 1);
  for (const bool logarithmic : {false, true}) {
    for (const std::vector<double>& values : {std::vector<double>{}, {nan}, {5}, {5, 5 + 1e-13}, {0, 0}}) {
      const Axis narrow = Axis::around(values, logarithmic, 0.04);
      EXPECT_LT(narrow.low, narrow.high);
      EXPECT_GE(narrow.ticks(5).size(), 2u);
    }
  }
}

TEST(Thin, KeepsSpikesGapsAndOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.01)});
  points[34567].y = 50;
  points[71234].y = -50;
  points[50000].y = nan;
  const std::vector<Point> thinned = thin(points);
  EXPECT_LE(thinned.size(), curve_points + 1);
  EXPECT_GT(thinned.size(), curve_points / 2);
  bool high = false, low = false, gap = false;
  for (std::size_t i = 0; i < thinned.size(); ++i) {
    EXPECT_TRUE(i == 0 || thinned[i].x > thinned[i - 1].x);
    high = high || (thinned[i].y == 50 && thinned[i].x == 34567);
    low = low || (thinned[i].y == -50 && thinned[i].x == 71234);
    gap = gap || std::isnan(thinned[i].y);
  }
  EXPECT_TRUE(high);
  EXPECT_TRUE(low);
  EXPECT_TRUE(gap);
}

TEST(Thin, LeavesFewPointsAlone) {
  const std::vector<Point> points(curve_points, Point{1, 2});
  EXPECT_EQ(thin(points).size(), points.size());
  EXPECT_LE(thin(std::vector<Point>(5000, Point{1, 2})).size(), 2u);  // all at one x
}

TEST(Units, NumbersAsPeopleReadThem) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1250000), "1.25 MB");
  EXPECT_EQ(bytes_text(999999), "1,000 kB");
  EXPECT_EQ(bytes_text(nan), "not finite");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(2.305), "2.31 s");
  EXPECT_EQ(seconds_text(725), "12 min 5 s");
  EXPECT_EQ(seconds_text(7260), "2 h 1 min");
  EXPECT_EQ(fixed(infinity, 3), "not finite");
}

TEST(LineChart, DrawsFromTheLowerLeftToTheUpperRight) {
  // 4 % of room above and below the values: 1000 * (1 - 0.04 / 1.08).
  EXPECT_EQ(paths(draw(chart_of({{0, 0}, {10, 100}}))), std::vector<std::string>{"M0.0 963.0L1000.0 37.0"});
}

TEST(LineChart, ValuesThatHaveNoPlaceAreGaps) {
  const auto parts = [](std::vector<Point> points, bool logarithmic) {
    const auto drawn = paths(draw(chart_of(std::move(points), logarithmic)));
    EXPECT_EQ(drawn.size(), 1u);
    return std::tuple(count(drawn.at(0), "M"), count(drawn.at(0), "L"), count(drawn.at(0), "h0"));
  };
  // The point alone at 3 is a dot.
  EXPECT_EQ(parts({{0, 1}, {1, 2}, {2, nan}, {3, 1}, {4, infinity}, {5, 2}, {6, 1}}, false),
            std::tuple(3u, 2u, 1u));
  EXPECT_EQ(parts({{3, 100}, {1, 1}, {2, 0}, {nan, 5}}, true), std::tuple(2u, 0u, 2u)) << "in any order";
}

TEST(LineChart, WithoutAValueTheLegendSaysSoAndOneIsADot) {
  for (const auto& points : {std::vector<Point>{}, {{1, nan}}}) {
    const std::string html = draw(chart_of(points));
    EXPECT_TRUE(paths(html).empty());
    EXPECT_NE(html.find("curve (no values)"), std::string::npos);
  }
  const std::string html = draw(chart_of({{1, nan}, {2, 5}}));
  EXPECT_EQ(count(html, "class=\"curve dots c0\""), 2u) << html;  // and its key
}

TEST(LineChart, DotsAreJoined) {
  LineChart chart = chart_of({{0, 1}, {1, 2}, {2, nan}, {3, 1}, {4, 2}});
  chart.curves[0].stroke = Stroke::dots;
  const std::string html = draw(chart);
  const std::string joint = html.substr(html.find("class=\"joint c0\" d=\"") + 20);
  const std::string data = joint.substr(0, joint.find('"', 1));
  EXPECT_EQ(count(data, "M"), 2u) << html;  // the gap stays one
  EXPECT_EQ(count(data, "L"), 2u);
  // Not a curve: the script shows each value once.
  EXPECT_EQ(count(html, "class=\"joint"), 1u);
}

TEST(LineChart, MarksOfOneNameShareALegendEntry) {
  LineChart chart = chart_of({{0, 1}, {10, 2}});
  chart.marks = {{2, "warm restart"}, {5, "warm restart"}, {7, "resumed"}, {99, "outside"}};
  const std::string html = draw(chart);
  EXPECT_EQ(count(html, "class=\"mark m0\""), 3u);  // two and the legend's
  EXPECT_EQ(count(html, "class=\"mark m1\""), 2u);
  EXPECT_EQ(count(html, "warm restart"), 1u);
  EXPECT_EQ(count(html, "outside"), 0u);
}

TEST(BarChart, BarsShareAScaleAndShowTheirLimit) {
  BarChart chart{"b", "title", "", {{"half", 50, "50", 100.0}, {"beyond", 200, "200", 100.0}}};
  const std::string html = draw(chart);
  EXPECT_NE(html.find("class=\"bar f0\" d=\"M0.0 0H250.0"), std::string::npos) << html;
  EXPECT_NE(html.find("class=\"bar beyond\" d=\"M0.0 0H1000.0"), std::string::npos);
  EXPECT_EQ(count(html, "class=\"limit\" d=\"M500.0"), 2u);
}

TEST(BarChart, NegativeValuesReachLeftOfZero) {
  const std::string html =
      draw(BarChart{"b", "t", "", {{"loss", -1, "-1", {}}, {"gain", 3, "3", {}}, {"none", nan, "", {}}}});
  EXPECT_NE(html.find("class=\"bar f1\" d=\"M0.0 0H250.0"), std::string::npos) << html;
  EXPECT_NE(html.find("class=\"bar f0\" d=\"M250.0 0H1000.0"), std::string::npos);
}

TEST(Escape, NothingFromOutsideBecomesMarkup) {
  EXPECT_EQ(escape("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(escape("grün ‖A₀‖ 🦘"), "grün ‖A₀‖ 🦘");
  EXPECT_EQ(escape(std::string_view("a\0\x1b"
                                    "b\n",
                                    5)),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b\n");
  // Not UTF-8: a lone continuation, a cut character, an overlong one, a surrogate, beyond U+10FFFF.
  for (const std::string bad : {"\x80", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    const std::string escaped = escape(bad + "<");
    EXPECT_TRUE(escaped.starts_with("\xEF\xBF\xBD")) << escaped;
    EXPECT_TRUE(escaped.ends_with("&lt;")) << escaped;
  }
}

TEST(Page, HostileTextStaysText) {
  const std::string hostile = "</script><img src=x onerror='alert(1)'>\"&\x01";
  LineChart chart{hostile, hostile, hostile, hostile, hostile, false, {}, {{1, hostile}}};
  chart.curves.push_back({hostile, {{0, 1}, {2, 3}}, 0, Stroke::solid});
  const std::string html =
      page(hostile, escape(hostile),
           section(hostile, hostile, note(hostile) + html_of({{hostile}, "", {{hostile}}}, hostile)) +
               draw(chart) + draw(BarChart{hostile, hostile, hostile, {{hostile, 1, hostile, {}}}}));
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("onerror='"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::report::report_drawing_test

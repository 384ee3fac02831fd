#include "tools/report_page/html.h"

#include <fmt/format.h>

namespace mulligan::report {
namespace {

// Colours after Okabe and Ito, which people with any kind of colour blindness can tell apart; lighter
// on dark pages.
constexpr std::string_view style = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1d1f21; --muted: #5c6166; --line: #d9dcdf; --grid: #e8eaec;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b3578f; --c4: #c78a00; --c5: #2f9bd8; --c6: #555b61;
  --alarm: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181a; --card: #1e2124; --ink: #e8e9ea; --muted: #a3a9af; --line: #3a3f44; --grid: #2c3034;
    --c0: #5ab0e8; --c1: #f28a45; --c2: #3fc9a0; --c3: #e097c4; --c4: #f0b93a; --c5: #9fd6f7; --c6: #b9bfc5;
    --alarm: #ff8a80;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main, header { max-width: 1320px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 20px; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 32px 0 10px; }
p { margin: 6px 0; }
code, .settings td, .facts td + td { overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 10px 0; font-size: 14px; }
a { color: var(--c0); }
.subtitle, .note, .about, .unit { color: var(--muted); }
.about { display: block; font-size: 13px; }
.warning { color: var(--alarm); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 8px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; }
.tile b { display: block; font-size: 19px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--muted); font-size: 13px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 12px; }
.chart { margin: 0; padding: 10px 12px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; min-width: 0; }
.plot { position: relative; height: 240px; margin: 12px 12px 4px 50px; }
.drawing { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.tick { position: absolute; font-size: 12px; color: var(--muted); white-space: nowrap; line-height: 14px; }
.tick.y { right: 100%; margin: -7px 6px 0 0; }
.tick.x { top: 100%; margin-top: 4px; transform: translateX(-50%); }
.x-label { text-align: center; color: var(--muted); font-size: 12px; margin-top: 18px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin-top: 6px; font-size: 13px; }
.entry { display: inline-flex; align-items: center; gap: 5px; overflow-wrap: anywhere; }
.key { width: 20px; height: 10px; flex: none; }
path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); }
.curve { stroke-width: 1.8px; stroke-linejoin: round; }
.faint { opacity: 0.4; stroke-width: 1.2px; }
.dashed { stroke-dasharray: 6 4; }
.dots { stroke-width: 7px; }
.joint { stroke-width: 1.3px; opacity: 0.7; }
.curve, .told { stroke-linecap: round; }
.band { fill: var(--c6); opacity: 0.2; }
.dashed { stroke-linecap: butt; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); }
.bar.f0 { fill: var(--c0); } .bar.f1 { fill: var(--c1); } .bar.beyond { fill: var(--alarm); }
.mark { stroke-width: 1.3px; stroke: var(--muted); }
.m0 { stroke-dasharray: 2 3; } .m1 { stroke-dasharray: 8 3; } .m2 { stroke-dasharray: 1 5; }
.limit { stroke: var(--ink); stroke-width: 2.5px; }
.bars { display: grid; grid-template-columns: fit-content(40%) 1fr max-content; gap: 4px 10px; align-items: center; margin-top: 8px; font-size: 13px; }
.bars .value { font-variant-numeric: tabular-nums; text-align: right; }
.row { width: 100%; height: 16px; display: block; }
blockquote { margin: 10px 0 2px; padding: 8px 12px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; }
pre { overflow-x: auto; font-size: 12px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { color: var(--muted); font-weight: 500; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.centre { text-align: center; }
.facts { margin-top: 12px; }
.settings td { font-family: ui-monospace, monospace; font-size: 12.5px; }
summary { cursor: pointer; margin: 8px 0; }
footer { max-width: 1320px; margin: 32px auto 24px; padding: 0 16px; color: var(--muted); font-size: 13px; }
.hair { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--muted); pointer-events: none; }
.values { position: absolute; top: 4px; padding: 4px 8px; background: var(--card); border: 1px solid var(--line); border-radius: 4px; font-size: 12px; pointer-events: none; white-space: nowrap; z-index: 1; }
@media (max-width: 560px) {
  .bars { grid-template-columns: 1fr max-content; grid-auto-flow: dense; }
  .bars .row { grid-column: 1 / -1; margin-bottom: 4px; }
  .bars .value { grid-column: 2; }
  .bars .label { grid-column: 1; }
  table, tbody, tr, td { display: block; }
  thead { display: none; }
  tr { padding: 6px 0; border-bottom: 1px solid var(--grid); }
  td { border: 0; padding: 1px 0; overflow-wrap: anywhere; }
  .number { text-align: left; white-space: normal; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--muted); }
  td:empty { display: none; }
}
@media print { .chart, .tile { break-inside: avoid; } }
)css";

// Shows values under the pointer, which it reads back from the drawn paths. Free of the two characters that XML would want escaped.
constexpr std::string_view script = R"js(
"use strict";
for (const plot of document.querySelectorAll(".plot")) {
  const [x0, x1] = plot.dataset.x.split(" ").map(Number);
  const [low, high, kind] = plot.dataset.y.split(" ");
  const y0 = Number(low), y1 = Number(high);
  const valueOf = v => kind === "log" ? y0 * Math.pow(y1 / y0, 1 - v / 1000) : y1 - v / 1000 * (y1 - y0);
  const hair = document.createElement("div"), box = document.createElement("div");
  hair.className = "hair"; box.className = "values";
  const text = v => Number(v.toPrecision(5)).toString();
  const leave = () => { hair.remove(); box.remove(); };
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("pointermove", event => {
    const frame = plot.getBoundingClientRect();
    const at = (event.clientX - frame.left) / frame.width * 1000;
    if (0 > at || at > 1000) { leave(); return; }
    const lines = [];
    let nearest = null;
    for (const path of plot.querySelectorAll("path.curve")) {
      let best = null;
      const points = [...path.getAttribute("d").matchAll(/[ML](-?[0-9.]+) (-?[0-9.]+)/g)];
      for (const [x, y] of points.map(m => [Number(m[1]), Number(m[2])])) if (best === null || Math.abs(best[0] - at) > Math.abs(x - at)) best = [x, y];
      if (best === null) continue;
      lines.push(path.dataset.name + ": " + text(valueOf(best[1])));
      if (nearest === null || Math.abs(nearest - at) > Math.abs(best[0] - at)) nearest = best[0];
    }
    if (nearest === null) return;
    box.textContent = "";
    for (const line of [plot.dataset.xlabel + " " + text(x0 + nearest / 1000 * (x1 - x0)), ...lines]) {
      box.appendChild(document.createElement("div")).textContent = line;
    }
    hair.style.left = nearest / 10 + "%";
    plot.append(hair, box);
    const left = nearest / 1000 * frame.width;
    box.style.left = (left > frame.width / 2 ? left - box.offsetWidth - 8 : left + 8) + "px";
  });
}
)js";

}  // namespace

std::string page(std::string_view title, std::string_view subtitle, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n<div "
      "class=\"subtitle\">{2}</div>\n</header>\n"
      "<main>\n{3}</main>\n<footer>Written by mulligan; this file asks for no other.</footer>\n"
      "<script>{4}</script>\n</body>\n</html>\n",
      escape(title), style, subtitle, body, script);
}

}  // namespace mulligan::report

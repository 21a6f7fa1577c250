// The settling windows: one row a window, its bar drawn on a time axis that all rows share.
import { element } from "./map.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
const SHORTEST = 10; // seconds that the axis has at least
const LONGEST = 600; // ended windows older than so many seconds do not stretch the axis
const body = document.querySelector("#window-table tbody");
const axis = document.getElementById("axis");
const news = document.getElementById("news");
const phases = new Map(); // by window: what was told last
let shown = [];

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function pattern() {
  const svg = shape("svg", { width: 0, height: 0, "aria-hidden": "true", class: "quiet" });
  const stripes = shape("pattern", { id: "stripes", width: 6, height: 6, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" });
  stripes.append(shape("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "stripe", "stroke-width": 6 }));
  svg.append(stripes);
  document.body.append(svg);
}

const seconds = (number) => (number < 10 ? `${number.toFixed(1)} s` : number < 120 ? `${Math.round(number)} s`
  : `${Math.floor(number / 60)} min ${Math.round(number % 60)} s`);
const clock = (time) => new Date(time * 1000).toISOString().slice(11, 19);

function parts(window, now) {
  const end = window.t4 ?? (window.phase === "ended" ? window.t3 ?? window.t1 ?? window.t0 : now);
  const t1 = window.t1 ?? end;
  const t3 = window.t3 ?? end;
  return [["terminating", window.t0, t1], ["deallocating", t1, t3], ["held", t3, end]].filter(([, a, b]) => b > a);
}

function state(window, now) {
  const since = (time) => seconds(Math.max(0, now - time));
  if (window.phase === "terminating") return `victims terminate, for ${since(window.t0)}`;
  if (window.phase === "deallocating") {
    return `victims are gone, claim ${window.awaited.join(", ")} is still allocated, for ${since(window.t1 ?? window.t0)}`;
  }
  if (window.phase === "held") return `${window.devices.join(", ")} free and held, for ${since(window.t3 ?? window.t0)}`;
  const whole = window.t4 ? `, ${seconds(window.t4 - window.t0)} after t0` : "";
  return `${window.outcome || "ended"}${whole}`;
}

function domain(windows, now) {
  const open = windows.some((window) => window.phase !== "ended");
  const newest = Math.max(...windows.map((window) => parts(window, now).at(-1)?.[2] ?? window.t0));
  const end = open ? now : newest;
  const starts = windows.filter((window) => window.phase !== "ended" || window.t0 > end - LONGEST).map((w) => w.t0);
  return [Math.min(end - SHORTEST, ...starts), end];
}

function chart(window, now, [from, to]) {
  const x = (time) => Math.max(0, Math.min(WIDTH, ((time - from) / (to - from)) * WIDTH));
  const all = parts(window, now);
  const text = all.map(([name, a, b]) => `${name} ${seconds(b - a)}`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} 24`, preserveAspectRatio: "none", role: "img", "aria-label": text });
  for (const part of [0.25, 0.5, 0.75]) {
    svg.append(shape("line", { x1: part * WIDTH, x2: part * WIDTH, y1: 0, y2: 24, class: "grid",
      "vector-effect": "non-scaling-stroke" }));
  }
  for (const [name, a, b] of all) {
    const bar = shape("rect", { x: x(a), y: 5, width: Math.max(2, x(b) - x(a)), height: 14, class: name,
      "stroke-width": 2, "vector-effect": "non-scaling-stroke" });
    const title = shape("title", {});
    title.textContent = `${name}: ${clock(a)} to ${clock(b)} (${seconds(b - a)})`;
    bar.append(title);
    svg.append(bar);
  }
  return svg;
}

function tell(windows) {
  const texts = [];
  for (const window of windows) {
    const before = phases.get(window.id);
    if (before !== window.phase) {
      if (before === undefined && window.phase !== "ended") {
        texts.push(`${window.victims.join(", ")} preempted for ${window.preemptor} on ${window.node}`);
      } else if (before !== undefined && window.phase === "ended") {
        texts.push(`${window.preemptor}: ${window.outcome}`);
      }
    }
  }
  phases.clear();
  for (const window of windows) phases.set(window.id, window.phase);
  // A screen reader gets one sentence, not a stream.
  if (texts.length) news.textContent = texts.length > 3 ? `${texts.length} settling windows changed` : texts.join(". ");
}

export function drawWindows({ rows, more }, now) {
  tell(rows);
  shown = rows;
  body.replaceChildren(...rows.map((window) => element("tr", {},
    element("th", { scope: "row" }, window.preemptor),
    element("td", { "data-label": "node" }, window.node),
    element("td", { "data-label": "victims" }, window.victims.join(", ")),
    element("td", { "data-label": "state", class: "state" }),
    element("td", { class: "chart" }))));
  const none = document.getElementById("no-windows");
  none.hidden = rows.length > 0 && !more;
  none.textContent = more ? `and ${more} more` : "Nothing has been preempted yet.";
  draw(now);
}

function draw(now) {
  if (!shown.length) {
    axis.textContent = "Time";
    return;
  }
  const span = domain(shown, now);
  const ends = element("span", { class: "axis" });
  for (const part of [0, 0.5, 1]) ends.append(element("span", {}, clock(span[0] + (span[1] - span[0]) * part)));
  axis.replaceChildren(ends);
  shown.forEach((window, number) => {
    const row = body.rows[number];
    const text = state(window, now);
    if (row.cells[3].textContent !== text) row.cells[3].textContent = text;
    row.cells[4].replaceChildren(chart(window, now, span));
  });
}

export function tickWindows(now) {
  if (shown.some((window) => window.phase !== "ended")) draw(now);
}

pattern();

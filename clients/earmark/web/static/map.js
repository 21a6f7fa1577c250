// The device map: drawn once for a layout; afterwards only cells that change are touched. A grid with one tab stop.
const table = document.getElementById("devices");
const detail = document.getElementById("detail");
const filter = document.getElementById("filter");
let cells = []; // one <td> a device, by its number
let current = null;

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const last = (device) => device.slice(device.lastIndexOf("/") + 1);

function heads(layout) {
  const width = Math.max(0, ...layout.map((row) => row.devices.length));
  return Array.from({ length: width }, (_, column) => {
    const names = new Set(layout.filter((row) => row.devices[column]).map((row) => last(row.devices[column])));
    return names.size === 1 ? [...names][0] : String(column + 1);
  });
}

export function drawMap(layout, states) {
  const focused = document.activeElement?.closest?.("#devices td")?.dataset.device;
  const columns = heads(layout);
  const head = element("tr", {}, element("th", { scope: "col" }, "node"));
  for (const name of columns) head.append(element("th", { scope: "col" }, name));
  const body = document.createElement("tbody");
  cells = [];
  for (const { node, devices } of layout) {
    const row = element("tr", {}, element("th", { scope: "row", title: node }, node));
    for (const device of devices) {
      const cell = element("td", { role: "gridcell", class: "cell", tabindex: "-1", "data-device": device });
      cells.push(cell);
      row.append(cell);
    }
    body.append(row);
  }
  for (const state of states) paint(state);
  for (const row of body.rows) markBusy(row);
  table.replaceChildren(element("thead", {}, head), body);
  document.getElementById("no-devices").hidden = cells.length > 0;
  current = cells.find((cell) => cell.dataset.device === focused) ?? cells[0] ?? null;
  if (current) current.tabIndex = 0;
  if (focused && current?.dataset.device === focused) current.focus();
  applyFilter();
}

function paint([number, state, text]) {
  const cell = cells[number];
  cell.dataset.state = state;
  cell.textContent = state;
  cell.title = `${cell.dataset.device}: ${text}`;
  cell.setAttribute("aria-label", `${last(cell.dataset.device)}: ${text}`);
}

function markBusy(row) {
  row.classList.toggle("busy", row.querySelector('[data-state="R"], [data-state="E"]') !== null);
}

export function changeCells(states) {
  const rows = new Set();
  for (const state of states) {
    if (!cells[state[0]]) continue;
    paint(state);
    rows.add(cells[state[0]].parentNode);
  }
  for (const row of rows) {
    markBusy(row);
    if (filter.value) row.classList.toggle("out", !found(row));
  }
  if (current && states.some(([number]) => cells[number] === current) && detail.dataset.shown) show(current);
}

export function counts(numbers) {
  for (const [state, number] of Object.entries(numbers)) {
    for (const place of document.querySelectorAll(`[data-count="${state}"]`)) place.textContent = number;
  }
}

function show(cell) {
  detail.dataset.shown = "yes";
  const text = `${cell.parentNode.cells[0].textContent}, ${cell.title}`;
  if (detail.textContent !== text) detail.textContent = text;
}

function choose(cell) {
  if (current) current.tabIndex = -1;
  current = cell;
  cell.tabIndex = 0;
  show(cell);
}

const shown = (row) => row.getClientRects().length > 0;

function neighbour(cell, key) {
  const row = cell.parentNode;
  const column = cell.cellIndex;
  const end = row.cells.length - 1;
  if (key === "ArrowRight") return row.cells[Math.min(column + 1, end)];
  if (key === "ArrowLeft") return row.cells[Math.max(column - 1, 1)];
  if (key === "Home") return row.cells[1];
  if (key === "End") return row.cells[end];
  const step = key === "ArrowDown" ? "nextElementSibling" : key === "ArrowUp" ? "previousElementSibling" : null;
  if (!step) return null;
  let next = row[step];
  while (next && !shown(next)) next = next[step];
  return next ? next.cells[Math.min(column, next.cells.length - 1)] : cell;
}

function found(row) {
  const wanted = filter.value.trim().toLowerCase();
  if (row.cells[0].textContent.toLowerCase().includes(wanted)) return true;
  return [...row.cells].some((cell) => cell.title.toLowerCase().includes(wanted));
}

function applyFilter() {
  for (const row of table.tBodies[0]?.rows ?? []) row.classList.toggle("out", filter.value !== "" && !found(row));
  // The one tab stop must not be hidden.
  if (current && !shown(current.parentNode)) {
    const visible = cells.find((cell) => shown(cell.parentNode));
    current.tabIndex = -1;
    current = visible ?? current;
    current.tabIndex = 0;
  }
}

table.addEventListener("keydown", (event) => {
  const cell = event.target.closest("td");
  const next = cell && neighbour(cell, event.key);
  if (!next) return;
  event.preventDefault();
  next.focus();
});
table.addEventListener("focusin", (event) => {
  const cell = event.target.closest("td");
  if (cell) choose(cell);
});
table.addEventListener("mouseover", (event) => {
  const cell = event.target.closest("td");
  // What the keyboard has chosen is not replaced by a mouse that lies about.
  if (cell && !table.contains(document.activeElement)) show(cell);
});
filter.addEventListener("input", applyFilter);
document.getElementById("busy").addEventListener("change", (event) => {
  table.classList.toggle("busy-only", event.target.checked);
  applyFilter();
});

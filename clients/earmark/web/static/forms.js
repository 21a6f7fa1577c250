// The queue, the explanation of one pod, and the what-if form.
import { element } from "./map.js";

const byId = (id) => document.getElementById(id);
const queueBody = document.querySelector("#queue-table tbody");
const rows = new Map(); // one <tr> a pod, kept so that the focus stays on its button

async function ask(address, options) {
  const answer = await fetch(address, options);
  const text = await answer.text();
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = { error: text || answer.statusText };
  }
  if (!answer.ok) throw new Error(data.error ?? answer.statusText);
  return data;
}

function failed(place, error) {
  place.replaceChildren(element("p", { class: "failed" }, error.message));
}

function queueRow(pod) {
  const row = element("tr", {}, element("th", { scope: "row" }), ...["state", "priority", "attempts", "nominated to",
    "reason", ""].map((label) => element("td", label ? { "data-label": label } : {})));
  row.cells[0].textContent = pod.namespace === "default" ? pod.name : `${pod.namespace}/${pod.name}`;
  for (const number of [2, 3]) row.cells[number].className = "number";
  const button = element("button", { type: "button", "aria-label": `Explain ${pod.namespace}/${pod.name}` }, "Explain");
  button.addEventListener("click", () => explain(pod.namespace, pod.name));
  row.cells[6].append(button);
  return row;
}

export function drawQueue({ rows: pods, more }) {
  const names = new Set();
  pods.forEach((pod, place) => {
    const name = `${pod.namespace}/${pod.name}`;
    names.add(name);
    if (!rows.has(name)) rows.set(name, queueRow(pod));
    const row = rows.get(name);
    [pod.queue.replaceAll("_", " "), pod.priority, pod.attempts, pod.nominated, pod.message].forEach((value, number) => {
      const cell = row.cells[number + 1];
      if (cell.textContent !== String(value)) cell.textContent = value;
    });
    if (queueBody.rows[place] !== row) queueBody.insertBefore(row, queueBody.rows[place] ?? null);
  });
  for (const [name, row] of rows) {
    if (names.has(name)) continue;
    row.remove();
    rows.delete(name);
  }
  const none = byId("no-queue");
  none.hidden = pods.length > 0 && !more;
  none.textContent = more ? `and ${more} more` : "No pod waits.";
}

async function explain(namespace, name) {
  const place = byId("explanation");
  place.hidden = false;
  place.replaceChildren(element("p", {}, "asking …"));
  try {
    const { lines } = await ask(`/explain?${new URLSearchParams({ namespace, name })}`);
    place.replaceChildren(...lines.map((line) => {
      const inside = line.startsWith(" ");
      return element("p", { class: inside ? "in" : line ? "" : "gap" }, line.trim());
    }));
  } catch (error) {
    failed(place, error);
  }
  place.scrollIntoView({ block: "nearest" });
}

function candidateRow(candidate, chosen) {
  const victims = candidate.victims.map((pod) => pod.name + (pod.devices.length ? ` (${pod.devices.join(", ")})` : ""));
  return element("tr", {},
    element("th", { scope: "row" }, candidate.node + (chosen ? " (chosen)" : "")),
    element("td", {}, victims.join(", ") || "nobody"),
    element("td", { class: "number" }, String(candidate.priority)),
    element("td", { class: "number" }, String(candidate.budgets)));
}

function answerParts(data) {
  const made = [element("p", { class: "first" }, data.summary)];
  const candidates = [...(data.chosen ? [[data.chosen, true]] : []), ...data.alternatives.map((item) => [item, false])];
  if (candidates.length) {
    const head = element("tr", {});
    for (const [name, kind] of [["Node", ""], ["Victims", ""], ["Highest priority", "number"],
      ["Budgets violated", "number"]]) head.append(element("th", { scope: "col", class: kind }, name));
    const body = element("tbody", {}, ...candidates.map(([item, chosen]) => candidateRow(item, chosen)));
    made.push(element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), body)));
  }
  if (data.moreAlternatives) made.push(element("p", {}, `and ${data.moreAlternatives} more nodes`));
  for (const reason of data.reasons) made.push(element("p", {}, `${reason.nodes}: ${reason.text}`));
  return made;
}

async function whatif(manifest) {
  const place = byId("answer");
  place.hidden = false;
  place.replaceChildren(element("p", {}, "asking …"));
  try {
    const data = await ask("/whatif", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ manifest }),
    });
    place.replaceChildren(...answerParts(data));
  } catch (error) {
    failed(place, error);
  }
  place.scrollIntoView({ block: "nearest" });
}

export function wireForms() {
  byId("explain-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { namespace, name } = event.target.elements;
    explain(namespace.value.trim(), name.value.trim());
  });
  byId("whatif-form").addEventListener("submit", (event) => {
    event.preventDefault();
    whatif(byId("manifest").value);
  });
}

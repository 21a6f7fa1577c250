// The page's scripts: one module a part. State is kept by the server; a part draws what it is sent and keeps only that.
import { drawMap, changeCells, counts } from "./map.js";
import { drawWindows, tickWindows } from "./windows.js";
import { drawQueue, wireForms } from "./forms.js";

const byId = (id) => document.getElementById(id);
let offset = 0; // server's clock - ours, in seconds

function connected(text, state) {
  const line = byId("connection");
  if (line.textContent !== text) line.textContent = text;
  line.className = state;
}

function problems(list) {
  const box = byId("problems");
  box.hidden = list.length === 0;
  box.textContent = list.join(" · ");
}

function take(data) {
  offset = data.now - Date.now() / 1000;
  if (data.layout) drawMap(data.layout, data.cells);
  else if (data.cells) changeCells(data.cells);
  if (data.counts) counts(data.counts);
  if (data.windows) drawWindows(data.windows, now());
  if (data.queue) drawQueue(data.queue);
  if (data.problems) problems(data.problems);
}

const now = () => Date.now() / 1000 + offset;

function follow() {
  const source = new EventSource("/events");
  for (const name of ["snapshot", "change"]) {
    source.addEventListener(name, (event) => {
      connected("live", "live");
      take(JSON.parse(event.data));
    });
  }
  source.onerror = () => {
    connected("connection lost; what you see may be old", "lost");
    // A server that refuses (another token after a restart) ends the stream for good: try again, slowly.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

wireForms();
setInterval(() => tickWindows(now()), 1000);
follow();

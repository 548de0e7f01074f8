// The list of requests, live while its tab is seen: rows that arrive are put where their ids, which hold time, sort.
"use strict";

const rows = document.querySelector("[data-live]");
const state = document.getElementById("live-state");
const MOST = 200;
let source = null;

function put(row) {
  const known = [...rows.children];
  if (known.some((each) => each.dataset.id === row.dataset.id)) return;
  const after = known.find((each) => each.dataset.id < row.dataset.id);
  rows.insertBefore(row, after ?? null);
}

function follow() {
  source = new EventSource(rows.dataset.live);
  source.onopen = () => { state.textContent = "Live"; };
  source.onerror = () => { state.textContent = "Waiting for the connection"; };
  source.onmessage = (event) => {
    const template = document.createElement("template");
    template.innerHTML = event.data;
    const oldest = rows.lastElementChild?.dataset.id ?? "";
    for (const row of [...template.content.querySelectorAll("tr")].reverse()) if (row.dataset.id > oldest) put(row);
    while (rows.children.length > MOST) rows.lastElementChild.remove();
  };
}

function obey() {
  source?.close();
  source = null;
  state.textContent = "Not live";
  if (!document.hidden) follow();
}

if (rows) {
  document.addEventListener("visibilitychange", obey);
  addEventListener("pagehide", () => source?.close());
  obey();
} else if (state) {
  setTimeout(() => { if (!document.hidden) location.reload(); }, 15000); // nothing yet: the first one is worth a look
}

// The list of requests, live while its tab is seen: rows that arrive are put where their ids, which hold time, sort.
"use strict";

const rows = document.querySelector("[data-live]");
const state = document.getElementById("live-state");
const MOST = 200;
const AGAIN = 3000; // milliseconds
let source = null;
let again = 0;

function put(row) {
  const known = [...rows.children];
  if (known.some((each) => each.dataset.id === row.dataset.id)) return;
  const after = known.find((each) => each.dataset.id < row.dataset.id);
  rows.insertBefore(row, after ?? null);
}

function follow() {
  source = new EventSource(rows.dataset.live);
  source.onopen = () => { state.textContent = "Live"; };
  source.onerror = () => {
    state.textContent = "Waiting for the connection";
    // An answer that is an error (a proxy's, or ours while the database is away) ends it for good: begin anew.
    if (source.readyState === EventSource.CLOSED) again = setTimeout(obey, AGAIN);
  };
  source.onmessage = (event) => {
    const template = document.createElement("template");
    template.innerHTML = event.data;
    const oldest = rows.lastElementChild?.dataset.id ?? "";
    for (const row of [...template.content.querySelectorAll("tr[data-id]")].reverse()) if (row.dataset.id > oldest) put(row);
    while (rows.children.length > MOST) rows.lastElementChild.remove();
  };
}

function obey() {
  clearTimeout(again);
  source?.close();
  source = null;
  if (document.hidden) state.textContent = "Not live";
  else follow();
}

if (rows) {
  document.addEventListener("visibilitychange", obey);
  addEventListener("pagehide", () => source?.close());
  obey();
} else if (state) {
  setTimeout(() => { if (!document.hidden) location.reload(); }, 15000); // nothing yet: the first one is worth a look
}

"use strict";
// Draws the fleet from what the server says, and asks anew each two seconds while somebody looks.
(() => {
  const root = document.getElementById("fleet");
  if (!root) return;
  const host = document.getElementById("fleet-pools");
  const dialog = document.getElementById("fleet-ask");
  const mayDrain = "mayDrain" in root.dataset;
  const AWAY = "The server does not answer now: these figures are old. It is asked again.";
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

  function make(tag, classes, text) {
    const element = document.createElement(tag);
    if (classes) element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const shown = (value) => (value === null ? "–" : number.format(value));
  const percent = (value) => (value === null ? "–" : `${number.format(value * 100)}%`);

  const COLUMNS = [
    ["Replica", (r) => cell("fleet-name", r.name, r.url)],
    ["State", state, "Ready takes requests; draining finishes what it runs; ejected fails real ones; down does not answer."],
    ["Running", (r) => cell("fleet-figure", shown(r.running)), "Requests it is generating for."],
    ["Waiting", (r) => cell("fleet-figure", shown(r.waiting)), "Requests in its own queue."],
    ["Waiting tokens", (r) => cell("fleet-figure", shown(r.waiting_tokens)), "Prompt tokens it has still to read."],
    ["KV used", kv, "How full its KV cache is, the memory that tokens of prompts and answers take while they are in use."],
    ["Prefix hits", (r) => cell("fleet-figure", percent(r.prefix_hit_rate)), "Of the prompt tokens those it had in its cache."],
    ["Retractions", (r) => cell("fleet-figure", shown(r.retractions)), "Requests it has put back for want of KV cache since it was started."],
    ["Tokens/s", (r) => cell("fleet-figure", shown(r.output_tokens_per_second)), "Output tokens a second."],
    ["Age", (r) => cell("fleet-figure", r.age === null ? "–" : `${number.format(r.age)} s`), "Since it last told all this."],
  ];

  function heading(title, hint) {
    const th = make("th", "", title);
    th.scope = "col";
    if (hint) th.title = hint;
    return th;
  }

  function explain() {
    const list = document.getElementById("fleet-words");
    for (const [title, , hint] of COLUMNS) if (hint) list.append(make("dt", "", title), make("dd", "", hint));
  }

  function cell(classes, text, note) {
    const td = make("td", classes, text);
    if (note) td.append(make("small", "", note));
    return td;
  }

  function state(replica) {
    const td = make("td");
    const ramp = replica.state === "ready" && replica.weight < 1 ? ` ${Math.round(replica.weight * 100)}%` : "";
    td.append(make("span", `fleet-state fleet-${replica.state}`, replica.state + ramp));
    if (replica.reason) td.append(make("small", "", replica.reason));
    return td;
  }

  function kv(replica) {
    const td = make("td", "fleet-kv");
    if (replica.kv_used === null) return cell("fleet-figure", "–");
    const bar = make("span", "fleet-bar");
    const fill = make("i", replica.kv_used > 0.9 ? "fleet-full" : "");
    fill.style.width = `${Math.round(replica.kv_used * 100)}%`;
    bar.append(fill);
    bar.title = replica.kv_capacity ? `of ${number.format(replica.kv_capacity)} tokens` : "";
    td.append(bar, make("span", "", percent(replica.kv_used)));
    return td;
  }

  function action(pool, replica) {
    const td = make("td", "fleet-action");
    const button = make("button", "", replica.enabled ? "Drain" : "Undrain");
    button.type = "button";
    button.addEventListener("click", () => ask(pool, replica));
    td.append(button);
    return td;
  }

  function ask(pool, replica) {
    const name = `${pool.name}/${replica.name}`;
    document.getElementById("fleet-question").textContent = replica.enabled
      ? `Drain ${name}? It finishes what it runs and gets no new requests.`
      : `Let ${name} take requests again?`;
    const yes = dialog.querySelector(".fleet-yes");
    yes.textContent = replica.enabled ? "Drain it" : "Undrain it";
    yes.onclick = () => {
      const form = document.getElementById("fleet-form");
      form.action = replica.drain;
      form.elements.wanted.value = replica.enabled ? "0" : "1";
      form.submit();
    };
    dialog.querySelector("[value=no]").onclick = () => dialog.close();
    dialog.showModal();
  }

  function draw(fleet) {
    const focused = document.activeElement?.dataset?.key;
    const pools = fleet.pools.map((pool) => {
      const section = make("section", "fleet-pool");
      const name = make("h2");
      const link = make("a", "hr-link", pool.name);
      link.href = pool.link;
      const wanted = pool.desired === null ? "" : `, ${pool.ready} ready, ${pool.desired} wanted by load`;
      name.append(link, make("small", "", `${pool.engine}, ${pool.model}${wanted}`));
      section.append(name);
      const frame = make("div", "hr-table-frame");
      const table = make("table", "hr-table hr-stack");
      const head = make("tr");
      for (const [title, , hint] of COLUMNS) head.append(heading(title, hint));
      if (mayDrain) head.append(make("th"));
      const body = make("tbody");
      for (const replica of pool.replicas) {
        const row = make("tr", replica.age === null || replica.age > 3 ? "fleet-stale" : "");
        for (const [title, draws] of COLUMNS) {
          const td = draws(replica);
          td.dataset.label = title;
          row.append(td);
        }
        if (mayDrain) {
          const td = action(pool, replica);
          td.firstChild.dataset.key = `${pool.name}/${replica.name}`;
          row.append(td);
        }
        body.append(row);
      }
      const top = make("thead");
      top.append(head);
      table.append(top, body);
      frame.append(pool.replicas.length ? table : make("p", "fleet-none", "No replicas."));
      section.append(frame);
      return section;
    });
    const left = host.querySelectorAll(".hr-table-frame");
    const scrolled = [...left].map((frame) => frame.scrollLeft);
    host.replaceChildren(...(pools.length ? pools : [make("p", "fleet-none", "No pools yet.")]));
    host.querySelectorAll(".hr-table-frame").forEach((frame, index) => { frame.scrollLeft = scrolled[index] || 0; });
    if (focused) host.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    say(fleet.problem);
    document.getElementById("fleet-age").textContent =
      fleet.age === null ? "" : `Collected ${number.format(fleet.age)} s ago. Figures over 3 s old are left out.`;
  }

  function say(problem) {
    const line = document.getElementById("fleet-problem");
    line.textContent = problem;
    line.hidden = !problem;
  }

  async function refresh() {
    if (document.hidden || dialog.open) return;
    try {
      const response = await fetch(root.dataset.state, { headers: { accept: "application/json" } });
      const isAnswer = response.headers.get("content-type")?.includes("json");
      if (isAnswer) draw(await response.json());
      else say(response.ok ? "The session has ended: load the page again." : AWAY);
    } catch {
      say(AWAY);
    }
  }

  explain();
  draw(JSON.parse(document.getElementById("fleet-start").textContent));
  setInterval(refresh, 2000);
})();

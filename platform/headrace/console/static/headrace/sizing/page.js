"use strict";
// The form asks the server anew on each change, and shows what it answers.
(() => {
  const root = document.getElementById("sizing");
  if (!root) return;
  const form = root.querySelector("form");
  const answer = root.querySelector(".sizing-answer");
  const refusal = document.getElementById("sizing-refusal");
  const results = document.getElementById("sizing-results");
  const leversHost = document.getElementById("sizing-levers");
  const leversButton = document.getElementById("sizing-levers-ask");
  let charts = JSON.parse(document.getElementById("sizing-start").textContent);
  let asking = null;
  let timer = 0;

  function draw() {
    const host = document.getElementById("sizing-charts");
    host.hidden = !charts.replicas;
    if (host.hidden) return;
    const { number } = SizingChart;
    SizingChart.line(document.getElementById("chart-replicas"), {
      points: charts.replicas.points, xName: "requests/s", yName: "replicas", xText: number, yText: number, stepped: true, whole: true,
      mark: { x: charts.replicas.peak[0], y: charts.replicas.peak[1], words: `${number(charts.replicas.peak[1])} at the peak` },
    });
    const cost = charts.cost;
    document.getElementById("figure-cost").hidden = !cost;
    if (cost) {
      SizingChart.line(document.getElementById("chart-cost"), {
        points: cost.points, xName: "of capacity used", yName: "per million", logX: true, logY: true,
        xText: (value) => `${number(value * 100)}%`, yText: number,
        mark: { x: Math.min(1, cost.here[0]), y: cost.here[1], words: `${number(cost.here[1])} here` },
        level: cost.hosted ? { y: cost.hosted, words: `hosted ${number(cost.hosted)}, input counted` } : null,
      });
    }
    SizingChart.bar(document.getElementById("chart-memory"), charts.memory);
  }

  function query() {
    const data = new URLSearchParams(new FormData(form));
    for (const name of ["from_usage", "days"]) data.delete(name);
    for (const [name, value] of [...data]) if (value === "") data.delete(name);
    return data;
  }

  function refuse(message) {
    refusal.textContent = message;
    refusal.hidden = !message;
    answer.classList.toggle("sizing-stale", Boolean(message));
  }

  async function get(url, signal) {
    const response = await fetch(`${url}?${query()}`, { signal, headers: { accept: "application/json" } });
    if (!response.headers.get("content-type")?.includes("json")) throw new Error("The session has ended: load the page again.");
    const body = await response.json();
    if (!response.ok) throw new Error(body.error.message);
    return body;
  }

  async function ask() {
    asking?.abort();
    const mine = (asking = new AbortController());
    answer.classList.add("sizing-stale");
    try {
      const body = await get(root.dataset.answer, mine.signal);
      results.innerHTML = body.html;
      charts = body.charts;
      leversHost.replaceChildren();
      refuse("");
      draw();
      history.replaceState(null, "", `?${query()}`);
    } catch (error) {
      if (error.name !== "AbortError") refuse(error.message);
    }
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(ask, 180);
  }

  // A slider stands beside its number: logarithmic between its ends unless it says linear.
  for (const slider of form.querySelectorAll("input[type=range]")) {
    const field = document.getElementById(slider.dataset.for);
    const low = Number(slider.dataset.low);
    const high = Number(slider.dataset.high);
    const linear = "linear" in slider.dataset;
    const whole = high >= 1000 || field.name === "spare";
    const toValue = (share) => (linear ? low + share * (high - low) : low * (high / low) ** share);
    const toShare = (value) => (linear ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low));
    const follow = () => {
      const value = Number(field.value);
      slider.value = field.value !== "" && value >= low ? Math.min(1, toShare(value)) * 1000 : 0;
    };
    slider.hidden = false;
    slider.addEventListener("input", () => {
      const value = toValue(slider.value / 1000);
      field.value = whole && value >= 10 ? Math.round(Number(value.toPrecision(3))) : field.name === "spare" ? Math.round(value) : Number(value.toPrecision(2));
      later();
    });
    field.addEventListener("input", follow);
    follow();
  }
  // On a narrow screen the answer should be near: the groups start closed.
  if (matchMedia("(max-width: 900px)").matches) for (const group of form.querySelectorAll("details")) group.open = false;
  form.addEventListener("input", (event) => {
    if (event.target.type !== "range" && !["from_usage", "days"].includes(event.target.name)) later();
  });

  leversButton.addEventListener("click", async () => {
    leversButton.disabled = true;
    leversHost.textContent = "Working it out…";
    try {
      leversHost.innerHTML = (await get(root.dataset.levers)).html;
    } catch (error) {
      leversHost.textContent = error.message;
    }
    leversButton.disabled = false;
  });

  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth !== width) { width = root.clientWidth; draw(); }
  }).observe(root);
  draw();
})();

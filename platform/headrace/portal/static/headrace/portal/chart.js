// Charts: stacked columns over time, drawn with uPlot from the numbers in `data-chart`, in the page's own colours.
"use strict";

const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const short = (number) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);

function stack(series) {
  const sums = series[0].values.map(() => 0);
  return series.map((each) => each.values.map((value, index) => (sums[index] += value)));
}

function draw(frame) {
  const data = JSON.parse(frame.dataset.chart);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const legend = frame.nextElementSibling;
  const when = new Intl.DateTimeFormat("en-GB", data.step === "hour"
    ? { timeZone: data.zone, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }
    : { timeZone: data.zone, day: "numeric", month: "short" });
  const columns = stack(data.series);
  const last = data.times.length - 1;
  const names = data.series.map((each, index) => ({ ...each, number: index + 1 }));

  const say = (index) => {
    const items = names.map((each) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.className = `swatch swatch-${each.number}`;
      const sum = index === null ? each.values.reduce((one, other) => one + other, 0) : each.values[index];
      const value = document.createElement("b");
      value.textContent = exact.format(sum);
      item.append(swatch, `${each.name} `, value, ` ${data.unit}`);
      return item;
    });
    const head = document.createElement("li");
    head.textContent = index === null ? "In all:" : `${when.format(data.times[index] * 1000)}:`;
    legend.replaceChildren(head, ...items);
  };

  // The tallest is drawn first, so that each lies on the one below it, parted by a line: hues alone part nothing.
  const drawn = [...names.keys()].reverse();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    font: `12px ${getComputedStyle(document.body).fontFamily}` };
  const options = {
    width: frame.clientWidth, height: frame.clientHeight, legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => {
      const step = last ? data.times[1] - data.times[0] : 3600;
      return [data.times[0] - step / 2, data.times[last] + step / 2];
    } }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), data.zone),
    axes: [{ ...axis, grid: { show: false }, values: (_plot, ticks) => ticks.map((tick) => when.format(tick * 1000)), space: 90 },
      { ...axis, values: (_plot, ticks) => ticks.map(short), size: 56 }],
    series: [{}, ...drawn.map((index) => ({
      label: names[index].name, width: 1, stroke: colour("--sheet"), fill: colour(`--series-${names[index].number}`), points: { show: false },
      paths: uPlot.paths.bars({ size: [0.75, 48], align: 0 }),
    }))],
    hooks: { setCursor: [(plot) => say(plot.cursor.idx ?? null)] },
  };
  frame.replaceChildren();
  const plot = new uPlot(options, [data.times, ...drawn.map((index) => columns[index])], frame);
  say(null);
  numbers(legend, data, when);
  return plot;
}

// The same in words, for those who do not look: a table of the steps in which there was anything.
function numbers(legend, data, when) {
  if (legend.nextElementSibling?.matches("details")) legend.nextElementSibling.remove();
  const details = document.createElement("details");
  details.className = "more numbers-of-chart";
  const summary = details.appendChild(document.createElement("summary"));
  summary.textContent = "Its numbers";
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    const frame = details.appendChild(document.createElement("div"));
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `The chart's numbers, in ${data.unit}`);
    const table = frame.appendChild(document.createElement("table"));
    table.className = "is-scrolls";
    const row = (section, first, rest, name) => {
      const line = section.insertRow();
      for (const [index, text] of [first, ...rest].entries()) {
        const cell = line.appendChild(document.createElement(index && name === "td" ? "td" : "th"));
        cell.textContent = text;
        if (index) cell.className = "n";
        if (cell.tagName === "TH") cell.scope = name === "td" ? "row" : "col";
      }
    };
    row(table.createTHead(), data.step === "hour" ? "Hour" : "Day", data.series.map((each) => each.name), "th");
    const body = table.createTBody();
    data.times.forEach((time, index) => {
      const values = data.series.map((each) => each.values[index]);
      if (values.some(Boolean)) row(body, when.format(time * 1000), values.map((each) => exact.format(each)), "td");
    });
  });
  legend.after(details);
}

function drawAll() {
  for (const frame of document.querySelectorAll("[data-chart]")) {
    frame.plot?.destroy();
    frame.plot = draw(frame);
  }
}

let waiting = 0;
const again = () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 100); };
addEventListener("resize", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
document.addEventListener("htmx:afterSettle", again);
drawAll();

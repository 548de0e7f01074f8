"use strict";
// Three small SVG charts. Numbers in, elements out; no formula of the sizing is repeated here.
const SizingChart = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const HEIGHT = 240;
  const PAD = { left: 52, right: 16, top: 18, bottom: 38 };

  function make(name, attributes, text) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const number = (value) => (Math.abs(value) >= 10000 ? compact : plain).format(value);

  function ticks(low, high, count, whole) {
    const rough = Math.max((high - low) / count, whole ? 1 : 0);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) || power;
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(value);
    return found;
  }

  function decades(low, high) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++)
      for (const each of [1, 2, 5]) if (each * 10 ** power >= low * 0.999 && each * 10 ** power <= high * 1.001) found.push(each * 10 ** power);
    return found;
  }

  // A line over x and y; `log` on either axis, `whole` steps of y. `mark` is one point with words, `level` a dashed
  // height with words. Words stand where the line is not: below a rising one, and left of a falling one.
  function line(host, { points, xName, yName, xText, yText, logX, logY, stepped, whole, mark, level }) {
    host.replaceChildren();
    if (!points.length) return;
    const width = Math.max(280, host.clientWidth);
    const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `${yName} against ${xName}` });
    const xs = points.map((point) => point[0]);
    const ys = points.map((point) => point[1]).concat(mark ? [mark.y] : [], level ? [level.y] : []);
    const box = { x0: logX ? Math.min(...xs) : 0, x1: Math.max(...xs), y0: logY ? Math.min(...ys) / 2 : 0, y1: Math.max(...ys) * (logY ? 1.3 : 1.08) };
    const scale = (value, low, high, from, to, log) => {
      const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
      return from + share * (to - from);
    };
    const X = (value) => scale(value, box.x0, box.x1, PAD.left, width - PAD.right, logX);
    const Y = (value) => scale(value, box.y0, box.y1, HEIGHT - PAD.bottom, PAD.top, logY);

    for (const value of logY ? decades(box.y0, box.y1) : ticks(box.y0, box.y1, 4, whole)) {
      svg.append(make("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: Y(value), y2: Y(value) }));
      svg.append(make("text", { x: PAD.left - 6, y: Y(value) + 4, "text-anchor": "end" }, yText(value)));
    }
    let last = -Infinity;
    for (const value of logX ? decades(box.x0, box.x1) : ticks(box.x0, box.x1, 5)) {
      if (X(value) - last < 44) continue;
      last = X(value);
      svg.append(make("text", { x: X(value), y: HEIGHT - PAD.bottom + 16, "text-anchor": "middle" }, xText(value)));
    }
    svg.append(make("text", { x: (PAD.left + width - PAD.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, xName));

    let path = "";
    points.forEach(([x, y], index) => {
      if (index && stepped) path += `H${X(x)}`;
      path += `${index ? "L" : "M"}${X(x)} ${Y(y)}`;
    });
    svg.append(make("path", { class: "line", d: path }));
    if (level) {
      svg.append(make("line", { class: "hosted", x1: PAD.left, x2: width - PAD.right, y1: Y(level.y), y2: Y(level.y) }));
      svg.append(make("text", { class: "words", x: PAD.left + 4, y: Y(level.y) - 5 }, level.words));
    }
    if (mark && mark.x >= box.x0 && mark.x <= box.x1) {
      svg.append(make("circle", { class: "here", cx: X(mark.x), cy: Y(mark.y), r: 5 }));
      const falls = points[0][1] > points[points.length - 1][1];
      const left = falls ? X(mark.x) > width * 0.4 : X(mark.x) > width * 0.7;
      const below = falls ? left : true;
      const crossed = below && level && Math.abs(Y(level.y) - Y(mark.y) - 13) < 12;
      const at = { x: X(mark.x) + (left ? -9 : 9), y: Y(mark.y) + (crossed ? 32 : below ? 17 : -9), "text-anchor": left ? "end" : "start" };
      svg.append(make("text", { class: "mark words", ...at }, mark.words));
    }
    host.append(svg);
    hover(host, svg, points, X, Y, (point) => `${xText(point[0])} ${xName}: ${yText(point[1])} ${yName}`, width);
  }

  function hover(host, svg, points, X, Y, words, width) {
    const hair = make("line", { class: "hair", y1: PAD.top, y2: HEIGHT - PAD.bottom, visibility: "hidden" });
    svg.append(hair);
    const tip = document.createElement("div");
    tip.className = "sizing-tip";
    tip.hidden = true;
    host.append(tip);
    svg.addEventListener("pointermove", (event) => {
      const at = ((event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width) * width;
      const near = points.reduce((best, point) => (Math.abs(X(point[0]) - at) < Math.abs(X(best[0]) - at) ? point : best));
      hair.setAttribute("x1", X(near[0]));
      hair.setAttribute("x2", X(near[0]));
      hair.setAttribute("visibility", "visible");
      tip.textContent = words(near);
      tip.hidden = false;
      const half = tip.offsetWidth / 2;
      const shown = svg.getBoundingClientRect().width / width;
      tip.style.left = `${Math.min(Math.max(X(near[0]) * shown, half), host.clientWidth - half)}px`;
      tip.style.top = `${Y(near[1]) * shown - 8}px`;
    });
    svg.addEventListener("pointerleave", () => {
      hair.setAttribute("visibility", "hidden");
      tip.hidden = true;
    });
  }

  // One bar of parts, [name, bytes], and its legend.
  function bar(host, { capacity, parts }) {
    host.replaceChildren();
    const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
    const width = Math.max(280, host.clientWidth);
    const svg = make("svg", { viewBox: `0 0 ${width} 40`, role: "img", "aria-label": parts.map(([name, bytes]) => `${name} ${gib(bytes)}`).join(", ") });
    const legend = document.createElement("ul");
    legend.className = "sizing-legend";
    let at = 0;
    parts.forEach(([name, bytes], index) => {
      if (bytes <= 0) return;
      const wide = (bytes / capacity) * width;
      const part = make("rect", { class: `part-${index + 1}`, x: at, y: 0, width: Math.max(1, wide - 2), height: 40, rx: 3 });
      part.append(make("title", {}, `${name}: ${gib(bytes)}`));
      svg.append(part);
      at += wide;
      const item = document.createElement("li");
      const key = document.createElement("i");
      key.className = `part-${index + 1}`;
      item.append(key, `${name} ${gib(bytes)}`);
      legend.append(item);
    });
    host.append(svg, legend);
  }

  return { line, bar, number };
})();

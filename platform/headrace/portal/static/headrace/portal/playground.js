// The playground: a conversation with the API, streamed. Stop ends the connection, and with it the engine's work.
"use strict";

const form = document.getElementById("play");
const said = document.getElementById("said");
const figure = (id, text) => { document.getElementById(id).textContent = text; };
const duration = (milliseconds) => (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(2)} s`);
const messages = [];
let key = null; // in this page's memory alone
let running = null;

function show(role, text, kind) {
  said.querySelector("[data-nothing]")?.remove();
  const message = document.createElement("div");
  message.className = `message ${kind ?? ""}`;
  const who = document.createElement("b");
  who.textContent = role;
  const body = document.createElement("span");
  body.textContent = text;
  message.append(who, body);
  said.append(message);
  said.scrollTop = said.scrollHeight;
  return body;
}

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function lend(project) {
  const body = new FormData();
  body.set("project", project);
  const answer = await fetch(form.dataset.key, {
    method: "POST", body, headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
  });
  if (!answer.ok) throw new Error("The portal gave no key for this project.");
  const given = await answer.json();
  await pause(1200); // every process knows a new key within a second
  return given.key;
}

// Asked for while the first message is being typed, so that nobody waits for it.
function freshKey(project) {
  if (!key || key.project !== project || key.until < Date.now()) {
    key = { text: lend(project), project, until: Date.now() + 13 * 60 * 1000 };
    key.text.catch(() => { key = null; });
  }
  return key.text;
}

async function call(body, text, signal) {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetch(form.dataset.api, {
      method: "POST", signal, body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${text}` },
    });
    if (answer.status !== 401 || attempt === 3) return answer;
    await pause(500);
  }
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

// In millionths of the currency; not a number where the model has no price.
function price(cost, bound = "") {
  if (Number.isNaN(cost)) {
    figure("cost", "unpriced");
    return;
  }
  const [before, after] = [bound, ` ${form.dataset.currency}`].map((text) => {
    const unit = document.createElement("span");
    unit.className = "unit";
    unit.textContent = text;
    return unit;
  });
  document.getElementById("cost").replaceChildren(before, (cost / 1e6).toFixed(6), after);
}

function count(state, isOver) {
  const seconds = (performance.now() - state.first) / 1000;
  const output = state.usage?.completion_tokens ?? state.output;
  if (state.first) figure("ttft", duration(state.first - state.began));
  if (seconds > 0.2 || isOver) figure("speed", state.first && seconds > 0 ? (output / seconds).toFixed(1) : "–");
  figure("output", state.usage || !isOver ? String(output) : `about ${output}`);
  const rates = JSON.parse(form.dataset.rates)[state.model];
  if (!state.usage) {
    // What the prompt came to is told at the end alone.
    if (output) price(output * rates?.[2], "over ");
    return;
  }
  const cached = state.usage.prompt_tokens_details?.cached_tokens ?? 0;
  figure("cached", `${state.usage.prompt_tokens}, ${cached}`);
  price((state.usage.prompt_tokens - cached) * rates?.[0] + cached * rates?.[1] + output * rates?.[2]);
}

function finish(text, id) {
  const line = show("", text, "is-ending");
  if (!id) return;
  const link = document.createElement("a");
  link.href = `${form.dataset.record}${id}/`;
  link.textContent = "its record";
  line.append(" ", link, " (a few seconds after its end)");
}

// Whether anything was answered.
async function ask() {
  const fields = form.elements;
  const model = fields.model.value;
  messages.push({ role: "user", content: fields.prompt.value });
  show("You", fields.prompt.value, "mine");
  const system = fields.system.value.trim();
  const body = {
    model, stream: true, stream_options: { include_usage: true },
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    max_tokens: Number(fields.max_tokens.value) || undefined, temperature: Number(fields.temperature.value),
  };
  const state = { began: performance.now(), first: 0, output: 0, usage: null, model };
  for (const id of ["ttft", "speed", "output", "cached", "cost"]) figure(id, "–");
  running = new AbortController();
  const waiting = setInterval(() => {
    if (!state.first) figure("ttft", `${Math.round((performance.now() - state.began) / 1000)} s so far`);
  }, 1000);
  let answer, text = "", line = null;
  try {
    answer = await call(body, await freshKey(fields.project.value), running.signal);
    if (!answer.ok) throw new Error((await answer.json()).error?.message ?? `The API said ${answer.status}.`);
    for await (const event of events(answer)) {
      if (event.error) throw new Error(event.error.message);
      if (event.usage) state.usage = event.usage;
      const delta = event.choices?.[0]?.delta ?? {};
      const piece = (delta.reasoning_content ?? "") + (delta.content ?? "");
      if (piece) {
        state.first ||= performance.now();
        state.output += 1;
        line ??= show(model, "");
        line.textContent = text += piece;
        said.scrollTop = said.scrollHeight;
      }
      count(state, false);
    }
    count(state, true);
    finish("Finished:", answer.headers.get("x-request-id"));
  } catch (error) {
    if (error.name === "AbortError") {
      count(state, true);
      const became = state.first ? "The engine works on it no more; what was delivered is charged:" : "Nothing is charged.";
      finish(`Stopped. ${became}`, state.first && answer.headers.get("x-request-id"));
    } else {
      show("Headrace", error.message, "went-wrong");
    }
  }
  if (text) messages.push({ role: "assistant", content: text }); else messages.pop();
  clearInterval(waiting);
  if (!state.first) figure("ttft", "–");
  running = null;
  return Boolean(text);
}

async function submit(event) {
  event.preventDefault();
  if (running) return;
  const [send, stop] = ["send", "stop"].map((id) => document.getElementById(id));
  send.disabled = true;
  stop.disabled = false;
  const isAnswered = await ask();
  send.disabled = false;
  stop.disabled = true;
  if (isAnswered) form.elements.prompt.value = ""; // what was refused may be mended and sent again
  form.elements.prompt.focus();
}

if (form) {
  form.addEventListener("submit", submit);
  document.getElementById("stop").addEventListener("click", () => running?.abort());
  document.getElementById("anew").addEventListener("click", () => {
    running?.abort();
    messages.length = 0;
    said.replaceChildren();
  });
  form.elements.prompt.addEventListener("input", () => { freshKey(form.elements.project.value); });
  form.elements.prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

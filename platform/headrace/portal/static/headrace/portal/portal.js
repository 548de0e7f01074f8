// What pages of the portal share: the menu of narrow screens, copy buttons, forms that answer to a choice at once.
"use strict";

document.documentElement.classList.add("js");

const menu = document.querySelector("[data-menu]");
if (menu) {
  menu.addEventListener("click", () => {
    const isOpen = document.getElementById("menu").classList.toggle("is-open");
    menu.setAttribute("aria-expanded", String(isOpen));
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const said = button.querySelector("span");
  try {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    said.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    said.textContent = "Press Ctrl+C"; // no clipboard outside of HTTPS: the text is selected instead
  }
  setTimeout(() => { said.textContent = "Copy"; }, 4000);
});

// Dangerous buttons ask; what will happen is in their data-ask. A form is sent once: the answer to a second click would
// hide the first one's, and with it a secret that is shown once.
document.addEventListener("submit", (event) => {
  const { target, submitter } = event;
  const question = submitter?.dataset.ask ?? target.dataset.ask;
  if (target.dataset.sent || (question && !confirm(question))) {
    event.preventDefault();
  } else if (target.method === "post") {
    target.dataset.sent = "yes";
    setTimeout(() => { delete target.dataset.sent; }, 5000);
  }
});

// What answered a form takes the address of what the form made: to reload it, or to come back, sends nothing again.
const made = document.querySelector("[data-address]");
if (made) history.replaceState(null, "", made.dataset.address);

// A choice marked `data-now` is obeyed as it is made.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-now]")) event.target.form.requestSubmit();
});

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

// Dangerous buttons ask; what will happen is in their data-ask.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.ask ?? event.target.dataset.ask;
  if (question && !confirm(question)) event.preventDefault();
});

// A choice marked `data-now` is obeyed as it is made.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-now]")) event.target.form.requestSubmit();
});

// What this adds to pages that work without it: prices while one types, examples at a click, copying,
// and a clock beside a question that waits. Nothing is loaded from elsewhere, nothing is stored.
"use strict";

const ask = document.getElementById("ask");
const panel = document.getElementById("preview");
const said = document.getElementById("said");
let timer, asking, last = "";

// the body that the form would send
const body = (form, button) => {
  const fields = new URLSearchParams(new FormData(form));
  if (button && button.name) fields.set(button.name, button.value);
  return fields;
};

// while the price is not that of what stands in the editor, there is nothing to pay
const stale = (is) => {
  panel.classList.toggle("stale", is);
  panel.setAttribute("aria-busy", is);
  for (const button of panel.querySelectorAll("form button")) button.disabled = is;
};

// the field that the words in the panel are about
const markWrong = (field) => {
  for (const input of ask.querySelectorAll("textarea, input.amount")) {
    input.toggleAttribute("aria-invalid", false);
    if (input.id !== field) continue;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", "wrong");
  }
};

async function preview() {
  clearTimeout(timer);
  const fields = body(ask), sent = fields.toString();
  if (!fields.get("sql").trim()) return;
  if (sent === last) return stale(false);
  if (asking) asking.abort();
  asking = new AbortController();
  fields.set("part", "preview");
  try {
    const answer = await fetch(ask.action, { method: "POST", body: fields, signal: asking.signal });
    if (answer.status === 401) throw new Error("You are signed out. Sign in in another tab, then go on here.");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = page.getElementById("preview-heading");
    if (!part) throw new Error(page.querySelector(".lead")?.textContent || "Try again.");
    const held = panel.contains(document.activeElement) && document.activeElement.value;
    panel.replaceChildren(...part.parentElement.childNodes);
    markWrong(document.getElementById("wrong")?.dataset.field);
    if (held) panel.querySelector(`[data-price][value="${CSS.escape(held)}"]`)?.focus();
    last = sent;
    stale(false);
    const words = panel.querySelector("[data-said], .notice");
    if (words) said.textContent = words.dataset.said || words.textContent;
    if (words) said.classList.toggle("unseen", !words.dataset.said); // an error stands in the panel
  } catch (error) {
    if (error.name === "AbortError") return;
    const words = error instanceof TypeError ? "The server does not answer." : error.message;
    const notice = Object.assign(document.createElement("p"), { className: "notice bad" });
    notice.textContent = said.textContent = `${words} Nothing was charged.`;
    panel.prepend(notice);
  }
}

if (ask) {
  const soon = () => { stale(true); clearTimeout(timer); timer = setTimeout(preview, 350); };
  ask.addEventListener("input", (event) => {
    const way = { price: "by-price", within: "by-error" }[event.target.id];
    if (way) document.getElementById(way).checked = true; // who types a price pays by price
    soon();
  });
  ask.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.formAction !== ask.action) return; // made-up rows
    event.preventDefault();
    last = "";
    preview();
  });
  ask.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) preview();
  });
  document.addEventListener("click", (event) => {
    const example = event.target.closest("[data-example]");
    const price = event.target.closest("[data-price]");
    if (example) {
      const form = document.getElementById("try" + example.dataset.example);
      for (const field of new FormData(form)) {
        const input = ask.elements.namedItem(field[0]);
        if (input) input.value = field[1];
      }
      for (const name of ["within", "delta", "weights"]) {
        const input = ask.elements.namedItem(name);
        if (input && !form.elements.namedItem(name)) input.value = "";
      }
      ask.elements.sql.dispatchEvent(new Event("painted", { bubbles: true }));
      ask.elements.sql.focus();
    } else if (price) {
      ask.elements.namedItem(price.name).value = price.value;
    } else return;
    document.getElementById("by-price").checked = true;
    event.preventDefault();
    preview();
  });
  document.getElementById("build").addEventListener("formdata", (event) => { // the price stays
    for (const [name, value] of body(ask)) if (name !== "sql") event.formData.set(name, value);
  });
  if (ask.elements.sql.value.trim() && !panel.querySelector(".price, .notice.bad")) preview();
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

for (const bar of document.querySelectorAll("[data-until]")) {
  const end = performance.now() + 1000 * bar.dataset.until;
  setInterval(() => { bar.value = bar.max - Math.max(0, (end - performance.now()) / 1000); }, 200);
}

document.addEventListener("submit", (event) => { // one press is one payment
  if (event.target.matches("[data-pay]")) setTimeout(() => { event.submitter.disabled = true; });
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

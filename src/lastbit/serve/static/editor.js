// The editor of questions: colours, completion, and names that a click puts at the cursor. The box
// stays the plain one that it is without script; a copy of its text behind it has the colours.
"use strict";

const box = document.getElementById("sql");
const inserts = [...document.querySelectorAll("[data-insert]")];
const split = (text) => (text || "").split(",").filter(Boolean);
const words = split(box.dataset.words), functions = split(box.dataset.functions);
const columns = inserts.filter((one) => one.closest("td[data-name=column]")).map((one) => one.dataset.insert);
const keys = inserts.filter((one) => one.closest("td[data-name='declared keys']")).map((one) => one.dataset.insert);
const kinds = new Map([
  ...words.flatMap((one) => one.split(" ")).map((one) => [one.toLowerCase(), "word"]),
  ...functions.map((one) => [one.toLowerCase(), "function"]),
  ...columns.map((one) => [one.toLowerCase(), "column"]),
]);
const candidates = [
  ...columns.map((one) => [one, "column"]), ...keys.map((one) => [one, "key"]),
  ...functions.map((one) => [`${one}(`, "function"]), ...words.map((one) => [one, "word"]),
];
const part = /--[^\n]*|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|\d+(?:\.\d*)?|[A-Za-z_]\w*|[^\w'"-]+|-/g;

// ---------------------------------------------------------------- colours

const paper = document.createElement("pre");
const stage = document.createElement("div");
const list = document.createElement("ul");
stage.className = "editor";
paper.setAttribute("aria-hidden", "true");
list.id = "completions";
list.hidden = true;
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Words that fit");
box.replaceWith(stage);
stage.append(paper, box, list);
box.setAttribute("aria-autocomplete", "list");
box.setAttribute("aria-controls", list.id);

const kindOf = (text) => {
  if (text.startsWith("--")) return "comment";
  if (text[0] === "'") return "text";
  if (/^\d/.test(text)) return "number";
  return kinds.get(text.toLowerCase()) || (text[0] === '"' ? "column" : "");
};

const paint = () => {
  paper.replaceChildren(...(box.value.match(part) || []).map((text) => {
    const piece = document.createElement("span");
    piece.className = kindOf(text) && `sql-${kindOf(text)}`;
    piece.textContent = text;
    return piece;
  }), "\n");
  paper.scrollTop = box.scrollTop;
};

// ---------------------------------------------------------------- what is put at the cursor

const put = (text, from = box.selectionStart) => {
  box.setRangeText(text, from, box.selectionEnd, "end");
  box.focus();
  box.dispatchEvent(new Event("input", { bubbles: true }));
};

for (const one of inserts) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "insert";
  button.title = "Put it at the cursor";
  button.dataset.insert = one.dataset.insert;
  button.append(...one.childNodes);
  one.replaceWith(button);
  button.addEventListener("click", () => {
    const before = box.value.slice(0, box.selectionStart);
    put((/[\w'")]$/.test(before) ? " " : "") + one.dataset.insert);
    close();
  });
}

// ---------------------------------------------------------------- completion

let chosen = -1;
const word = () => box.value.slice(0, box.selectionStart).match(/["']?\w*$/)[0];

const close = () => {
  list.hidden = true;
  chosen = -1;
  box.removeAttribute("aria-activedescendant");
};

const choose = (place) => {
  chosen = place;
  [...list.children].forEach((one, i) => one.setAttribute("aria-selected", i === place));
  list.children[place].scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", list.children[place].id);
};

const open = (least) => {
  const typed = word().toLowerCase();
  const after = box.value.slice(box.selectionStart, box.selectionStart + 1);
  const fit = typed.length < least || /\w/.test(after) ? [] : candidates.filter(
    ([text]) => text.toLowerCase().startsWith(typed) || text.slice(1).toLowerCase().startsWith(typed || "\0"));
  if (!fit.length || fit.some(([text]) => text.replace("(", "").toLowerCase() === typed)) return close();
  list.replaceChildren(...fit.slice(0, 8).map(([text, kind], i) => {
    const item = document.createElement("li");
    item.id = `completion${i}`;
    item.setAttribute("role", "option");
    item.dataset.text = text;
    item.append(Object.assign(document.createElement("span"), { textContent: text, className: `sql-${kind}` }));
    item.append(Object.assign(document.createElement("span"), { textContent: kind, className: "soft" }));
    item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(i); take(); });
    return item;
  }));
  list.hidden = false;
  const at = document.createRange(), end = box.selectionStart;
  let left = end, piece = [...paper.children].find((one) => (left -= one.textContent.length) <= 0);
  if (piece) {
    at.setStart(piece.firstChild, left + piece.textContent.length);
    const caret = at.getBoundingClientRect(), around = stage.getBoundingClientRect();
    const room = Math.max(0, around.width - list.offsetWidth);
    list.style.setProperty("left", `${Math.min(caret.left - around.left, room)}px`);
    list.style.setProperty("top", `${caret.bottom - around.top + 2}px`);
  }
  choose(0);
};

const take = () => {
  const text = list.children[chosen].dataset.text;
  put(text, box.selectionStart - word().length);
  close();
};

box.addEventListener("input", (event) => {
  paint();
  if (event.inputType && event.inputType.startsWith("insert")) open(2);
  else close();
});
box.addEventListener("scroll", () => { paper.scrollTop = box.scrollTop; });
box.addEventListener("blur", close);
box.addEventListener("keydown", (event) => {
  if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    open(0);
  } else if (list.hidden || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    choose((chosen + step + list.children.length) % list.children.length);
  } else if (event.key === "Tab" && !event.shiftKey) {
    event.preventDefault();
    take();
  } else if (event.key === "Escape") {
    event.preventDefault();
    close();
  } else if (["ArrowLeft", "ArrowRight", "Home", "End", "Enter"].includes(event.key)) {
    close();
  }
});
for (const one of document.querySelectorAll("[data-scripted]")) one.hidden = false;
addEventListener("painted", paint);
new ResizeObserver(() => { paper.style.setProperty("height", `${box.offsetHeight}px`); }).observe(box);
paint();

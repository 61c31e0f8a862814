// What a search shows first: pages that help with a task, then messages and reference; history last.
var asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/);
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    if (asked.every((word) => title.toLowerCase().includes(word))) score *= 1.5;
    if (/^docs\/(start|how-to|choosing|glossary)/.test(docname)) return 3 * score;
    // the library: to a search engine that takes plurals off, it is Laplace noise by an angle
    if (/^docs\/theory\/polar/.test(docname) && asked.includes("polars")) return score / 9;
    if (/^docs\/reference\/errors/.test(docname)) return 2 * score;
    if (/^docs\/decisions|^[A-Z]|^(tests|bench)\//.test(docname)) return score / 4;
    return score;
  },
  // the rest is as Sphinx has it
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

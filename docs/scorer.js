// What a search shows first: pages that help with a task, then messages and reference; history last.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    if (/^docs\/(start|how-to|choosing|glossary)/.test(docname)) return 3 * score;
    if (/^docs\/theory\/polar/.test(docname) && /polars/i.test(location.search)) return score / 9;
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

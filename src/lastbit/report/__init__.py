"""Reports: pure functions of data that is already public.

Nothing in this room draws noise, reads a table or spends a budget. A function here takes plain
frozen values and returns text; the caller decides where the text goes. What is handed to this room
must be fit for release, because everything in it may be printed.

Pictures are SVG and pages HTML without script, font or image from elsewhere. They follow the
reader's light or dark scheme, and every text in them is escaped. Both are `Markup`, a `str`.

| file | holds |
|---|---|
| `charts.py` | one frame, one look; bars and stems as SVG |
| `law_charts.py` | the two output laws of an audit |
| `page.py`, `templates/` | words fit to print; the HTML shell, a template for each kind of page |
| `plan.py` | the facts of a plan, the same on every screen; the record of an answer, read |
| `budget.py` | what is spent and what is left of an account |
| `answer.py` | an answer: its question, promise and page |
| `cells.py`, `whole.py` | its numbers as text, with noise and whole; what the whole rests on |
| `answer_charts.py`, `marginals.py` | its charts; tables of counts |
| `claims.py` | what a certificate claims, in words |
| `certificate.py`, `proofs.py` | its page and LaTeX; its proof |
| `register.py` | the register of releases of a ledger |
| `deployment.py`, `registry.py` | the checklist of SP 800-226; an entry for a public registry |
| `maps.py` | maps of true and noisy places |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)

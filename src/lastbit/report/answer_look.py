"""The style sheet of the report of answers: light, dark and paper."""

from __future__ import annotations

_LIGHT = """--paper: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #d8dee4; --panel: #f6f8fa;
    --bar: #2f7fb8; --before: #a9b4bf; --track: #e7ebef; --accent: #0059a0; --whisker: #1b1f24;"""
_DARK = """--paper: #0d1117; --ink: #f0f3f6; --soft: #a9b3bd; --line: #2f363e; --panel: #161b22;
    --bar: #4a9bd4; --before: #5d6873; --track: #262d35; --accent: #79c0ff; --whisker: #f0f3f6;"""

LOOK = f"""
  :root {{ color-scheme: light dark; {_LIGHT} }}
  @media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
  @media print {{ :root {{ color-scheme: light; {_LIGHT} }} }}
  * {{ box-sizing: border-box; }}
  body {{ margin: 0; background: var(--paper); color: var(--ink);
    font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }}
  main {{ margin: 0 auto; padding: 2.2rem 1.2rem 3rem; max-width: 60rem; }}
  h1 {{ font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }}
  h2 {{ font-size: 1.2rem; margin: 2.3rem 0 .7rem; padding-bottom: .25rem;
    border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }}
  h3 {{ font-size: 1.02rem; margin: 1.6rem 0 .4rem; }}
  h2.numbered {{ font-size: 1.4rem; margin-top: 3rem; }}
  p {{ margin: .5rem 0; max-width: 46rem; }}
  .soft, footer {{ color: var(--soft); font-size: .88rem; }}
  a {{ color: var(--accent); }}
  .contents {{ padding-left: 1.3rem; margin: .6rem 0; }}
  .promise {{ background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
    border-left: 4px solid var(--accent); padding: .7rem 1.1rem; margin: 1rem 0; }}
  .price {{ font-size: 1.25rem; font-weight: 650; margin: 0; color: var(--accent); }}
  dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.1rem;
    margin: .4rem 0; }}
  dt {{ font-weight: 600; overflow-wrap: anywhere; }} dd {{ margin: 0; }}
  code, pre {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }}
  code {{ font-size: .82rem; overflow-wrap: anywhere; }}
  pre {{ background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
    padding: .6rem .9rem; font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere; }}
  .wide {{ overflow-x: auto; }}
  table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }}
  th, td {{ text-align: left; vertical-align: baseline; padding: .22rem 1.3rem .22rem 0; }}
  thead th {{ border-bottom: 1px solid var(--line); font-size: .88rem; color: var(--soft);
    font-weight: 600; }}
  tbody tr + tr td {{ border-top: 1px solid color-mix(in srgb, var(--line) 55%, transparent); }}
  table.plain tr + tr td {{ border-top: 0; }}
  table.plain th {{ white-space: nowrap; font-weight: 600; }}
  table.answer td {{ overflow-wrap: break-word; min-width: 4.5rem; }}
  table.plan {{ font-size: .88rem; }}
  table.plan td:last-child, .price-cell {{ white-space: nowrap; }}
  table.plan th, table.plan td {{ padding-right: .9rem; }}
  .number {{ text-align: right; white-space: nowrap; }}
  thead th.number:nth-child(n+2) {{ text-align: right; }}
  .figures {{ display: flex; flex-wrap: wrap; gap: 1rem; margin: .8rem 0; }}
  .figure {{ border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1.4rem;
    background: var(--panel); }}
  .big {{ font-size: 2rem; font-weight: 650; line-height: 1.25;
    font-variant-numeric: tabular-nums; }}
  .charts {{ display: flex; flex-wrap: wrap; gap: 1.2rem 1rem; margin: .6rem 0 1rem; }}
  svg.chart {{ max-width: 100%; height: auto; }}
  svg text {{ font-family: system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
    fill: var(--ink); font-size: 12.5px; }}
  svg .heading {{ font-size: 14px; font-weight: 650; }}
  svg .tick {{ font-size: 11.5px; fill: var(--soft); }}
  svg .end {{ text-anchor: end; }} svg .middle {{ text-anchor: middle; }}
  svg .grid {{ stroke: var(--line); stroke-width: 1; }}
  svg .origin, svg .axis {{ stroke: var(--soft); stroke-width: 1; }}
  svg .bar {{ fill: var(--bar); }} svg .track {{ fill: var(--track); }}
  svg .before {{ fill: var(--before); }}
  svg .dot {{ fill: var(--bar); stroke: var(--paper); stroke-width: 1.2; }}
  svg .whisker {{ stroke: var(--whisker); stroke-width: 1.6; }}
  svg.meter {{ width: min(22rem, 45vw); height: .8rem; border-radius: 4px; display: block; }}
  table.plain td {{ vertical-align: middle; }}
  .swatch {{ display: inline-block; width: .75em; height: .75em; border-radius: 2px;
    margin: 0 .15em 0 .7em; border: 1px solid var(--line); }}
  .swatch:first-child {{ margin-left: 0; }}
  .here {{ background: var(--bar); }} .before {{ background: var(--before); }}
  .left {{ background: var(--track); }}
  summary {{ cursor: pointer; color: var(--soft); font-size: .88rem; }}
  details {{ margin: .3rem 0 1rem; }}
  footer {{ margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .6rem; }}
  @media print {{
    @page {{ margin: 1.6cm; }}
    body {{ font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
    main {{ max-width: none; padding: 0; }}
    h1, h2, h3 {{ break-after: avoid; }} tr, svg, .promise, .figure {{ break-inside: avoid; }}
    .wide {{ overflow: visible; }} details {{ display: none; }}
    th, td {{ padding-right: .8rem; }}
  }}
"""

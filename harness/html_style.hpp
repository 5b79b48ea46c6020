// SPDX-License-Identifier: Apache-2.0
// The style sheet of the HTML report. Colours hold 4.5:1 against their background in both schemes.
#pragma once

#include <string_view>

namespace qkcts {

inline constexpr std::string_view html_style = R"css(
:root { color-scheme: light dark; --ink: #1c2126; --soft: #59626b; --paper: #ffffff; --panel: #f3f5f7; --line: #d5dade;
  --good: #14692f; --bad: #a8201a; --bar: #2f6fab;
  --h0: #dbe9f6; --h1: #9dc3e3; --h2: #4f93c8; --h3: #1d4f82; --h4: #c0241d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #a3adb7; --paper: #14181c; --panel: #1f252b; --line: #39424b; --good: #63c785; --bad: #ff8078;
    --bar: #6fa8dc; --h0: #1f3347; --h1: #2f5b85; --h2: #4f93c8; --h3: #a9d0f2; --h4: #ff6b61; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem 1.5rem 4rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0.5rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; }
a { color: var(--bar); } code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); padding: 0.6rem; overflow-x: auto; margin: 0.4rem 0; }
li pre, pre.failure { white-space: pre-wrap; overflow-wrap: anywhere; }
li, li pre, p, summary, figcaption, dd { overflow-wrap: anywhere; }
.failure { border-left: 4px solid var(--bad); }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; background: var(--paper); padding: 0.3rem; }
:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
.banner { font-size: 1.3rem; font-weight: 600; margin: 0.4rem 0; padding: 0.3rem 0.8rem; border-left: 6px solid currentColor;
  background: var(--panel); }
.good { color: var(--good); } .bad { color: var(--bad); } .dim { color: var(--soft); }
.badge { font-weight: 600; white-space: nowrap; }
.counts { display: flex; flex-wrap: wrap; gap: 1.2rem; list-style: none; padding: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: left; padding: 0.2rem 0.7rem 0.2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody th { font-weight: 400; } td.n, th.n { text-align: right; padding-right: 1.2rem; } thead th { color: var(--soft); }
summary { cursor: pointer; padding: 0.2rem 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg.wide { width: 100%; height: auto; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); } svg .mark { stroke: var(--bad); stroke-width: 2; }
svg .bar { fill: var(--bar); }
svg circle { fill-opacity: 0.65; } svg circle.good { fill: var(--bar); } svg circle.bad { fill: var(--bad); }
svg circle.dim { fill: var(--soft); } svg circle.plain { fill: none; stroke: var(--soft); stroke-width: 1; }
svg .h0 { fill: var(--h0); } svg .h1 { fill: var(--h1); } svg .h2 { fill: var(--h2); } svg .h3 { fill: var(--h3); }
svg .h4 { fill: var(--h4); } svg .empty { fill: var(--panel); stroke: var(--line); }
.legend span { white-space: nowrap; margin-right: 0.6rem; } svg.key { width: 0.9em; height: 0.9em; vertical-align: -0.1em; }
.small { font-size: 0.85rem; color: var(--soft); margin: 0.2rem 0 0.6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 0.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; } figcaption .dim { font-weight: 400; font-size: 0.85rem; } figure svg { width: 100%; }
dt { font-weight: 600; } dd { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
@media print { details > *:not(summary) { display: block; } body { max-width: none; } }
)css";

}  // namespace qkcts

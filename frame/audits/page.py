"""The look of a report: readable on a phone, on paper and in the dark, without anything from outside."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """\
:root { color-scheme: light dark; --page: #ffffff; --ink: #1f2328; --muted: #57606a; --grid: #d9dee3;
  --soft: #f4f6f8; --exceeds: #8c1c13; --consistent: #0a5a96; --none: #57606a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e6e9ec; --muted: #a6b0ba; --grid: #3a424b; --soft: #1e242b;
    --exceeds: #ff9d8f; --consistent: #8ac4f5; --none: #a6b0ba; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.5rem 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 0.75rem; padding-top: 1rem;
  border-top: 1px solid var(--grid); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 0.4rem; }
p, ul { margin: 0.4rem 0 0.8rem; }
ul { padding-left: 1.2rem; }
.lead { font-size: 1.1rem; }
.verdict { background: var(--soft); border-left: 5px solid var(--none); padding: 0.8rem 1rem; }
.verdict.exceeds { border-color: var(--exceeds); }
.verdict.consistent { border-color: var(--consistent); }
.verdict p { margin: 0.35rem 0 0; font-size: 1.08rem; }
.mark { font-weight: 650; color: var(--none); white-space: nowrap; }
.mark.exceeds { color: var(--exceeds); }
.mark.consistent { color: var(--consistent); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.94rem; overflow-wrap: normal; }
caption { text-align: left; font-weight: 650; padding-bottom: 0.3rem; }
th, td { text-align: left; padding: 0.35rem 0.6rem 0.35rem 0; vertical-align: top;
  border-bottom: 1px solid var(--grid); font-weight: 400; }
thead th { color: var(--muted); border-bottom-width: 2px; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.pairs .number { white-space: normal; }
.overview th[scope="row"] { min-width: 9rem; }
.total th, .total td { border-top: 2px solid var(--grid); }
a { color: var(--consistent); }
figure { margin: 1.2rem 0; max-width: 40rem; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--muted); font-size: 0.9rem; margin-top: 0.4rem; }
dl { margin: 0.4rem 0; display: grid; grid-template-columns: minmax(8rem, 12rem) 1fr; gap: 0.25rem 1rem; }
dt { color: var(--muted); }
dd { margin: 0; }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--grid); color: var(--muted);
  font-size: 0.9rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.5rem; } }
@media print { .scroll { overflow: visible; } section { break-inside: auto; } }
"""

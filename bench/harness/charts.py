# SPDX-License-Identifier: Apache-2.0
"""The two charts of docs/performance.md, as SVG without any library."""

import math
from xml.sax.saxutils import escape

from harness import files
from harness.report import words

# Colours that remain apart for colour-blind readers (Okabe and Ito), one per implementation, the same in every chart.
colours = {
    "serial": "#555555",
    "serial_unrolled": "#999999",
    "strata_fork_join": "#0072B2",
    "strata_fibers": "#56B4E9",
    "tbb": "#D55E00",
    "openmp": "#E69F00",
    "parasail": "#009E73",
}
panels = [("fib", None, "fib"), ("nqueens", "13", "nqueens(13)"), ("uts", "T1", "UTS T1"), ("uts", "T3", "UTS T3"),
          ("align", "lambda-2000k", "align")]
style = ("text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
         ".title{font-size:15px;font-weight:bold}.small{font-size:11px;fill:#666}"
         ".panel{font-size:13px;font-weight:bold}.axis{stroke:#888;stroke-width:1}.grid{stroke:#e4e4e4;stroke-width:1}"
         ".ideal{stroke:#bbb;stroke-width:1;stroke-dasharray:4 3;fill:none}")


def _svg(width, height, body, label):
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" '
            'aria-label="%s">\n<style>%s</style>\n<rect width="%d" height="%d" fill="#ffffff"/>\n%s\n</svg>\n'
            % (width, height, width, height, escape(label), style, width, height, "\n".join(body)))


def _text(x, y, text, cls="", anchor="start"):
    return '<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>' % (x, y, cls, anchor, escape(text))


def _line(x1, y1, x2, y2, cls):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>' % (x1, y1, x2, y2, cls)


def _members(results, kernel, parameter):
    """The runs of one panel and its serial run, or (.., None)."""
    runs = [r for r in results.values() if r.case.kernel == kernel and parameter in (None, r.case.parameter)]
    return runs, next((r for r in runs if r.case.impl == "serial"), None)


def _shown(results):
    for kernel, parameter, title in panels:
        runs, serial = _members(results, kernel, parameter)
        if serial is not None:
            yield title, runs, serial


def _times(x):
    return "%.2f×" % x if x < 10 else "%.0f×" % x


def overhead(results):
    """Horizontal bars on a logarithmic axis: time per unit on one worker over that of the serial program."""
    groups = []
    for title, runs, serial in _shown(results):
        bars = [(r.case.impl, r.unit_ns / serial.unit_ns) for r in runs
                if r.case.workers == 1 and r.case.impl not in ("serial", "serial_unrolled")]
        groups.append((title, serial, bars))
    if not groups:
        return None
    left, right, bar, gap, top = 190, 70, 16, 26, 66
    width = 760
    low = min(0.5, min(v for _, _, bars in groups for _, v in bars))
    high = max(2.0, max(v for _, _, bars in groups for _, v in bars))

    def x(v):
        return left + (width - left - right) * (math.log(v) - math.log(low)) / (math.log(high) - math.log(low))

    height = top + sum(gap + (bar + 4) * len(bars) for _, _, bars in groups) + 34
    body = [_text(16, 26, "Time per task on one worker, compared with the serial program", "title"),
            _text(16, 45, "1× is as fast as serial; logarithmic axis", "small")]
    bottom = height - 30
    tick = 1.0
    ticks = []
    while tick <= high:
        ticks += [t for t in (tick, 2 * tick, 5 * tick) if t <= high]
        tick *= 10
    if low <= 0.5:
        ticks.insert(0, 0.5)
    for t in ticks:
        body.append(_line(x(t), top - 8, x(t), bottom, "axis" if t == 1 else "grid"))
        body.append(_text(x(t), bottom + 16, "%g×" % t, "small", "middle"))
    y = top
    for title, serial, bars in groups:
        body.append(_text(16, y + 12, title, "panel"))
        body.append(_text(24 + 8.2 * len(title), y + 12, "serial " + _duration(serial.unit_ns), "small"))
        y += gap - 6
        for impl, v in bars:
            x0, x1 = sorted((x(1.0), x(v)))
            body.append(_text(left - 8, y + bar - 4, words[impl], "", "end"))
            body.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="%s"/>'
                        % (x0, y, max(x1 - x0, 1.5), bar, colours[impl]))
            body.append(_text(max(x1, x(1.0)) + 6, y + bar - 4, _times(v)))
            y += bar + 4
        y += 6
    return _svg(width, height, body, "Time per task on one worker compared with the serial program")


def _duration(ns):
    return "%.2f ns" % ns if ns < 10 else "%.0f ns" % ns


def speedup(results):
    """One small panel a kernel: speed-up over the serial program against the number of workers."""
    shown = list(_shown(results))
    if not shown:
        return None
    counts = sorted({r.case.workers for _, runs, _ in shown for r in runs})
    most = max(counts)
    panel_w, panel_h, pad_left, pad_top, columns = 236, 210, 44, 76, 3
    rows = (len(shown) + columns - 1) // columns
    impls = [i for i in colours if i not in ("serial_unrolled",) and
             any(r.case.impl == i for _, runs, _ in shown for r in runs)]
    width = columns * (panel_w + 14) + 16
    height = pad_top + rows * (panel_h + 44) + 34
    body = [_text(16, 26, "Speed-up over the serial program", "title"),
            _text(16, 45, "dashed: one for each worker; the serial program is 1", "small")]
    for n, (title, runs, serial) in enumerate(shown):
        ox = 16 + (n % columns) * (panel_w + 14)
        oy = pad_top + (n // columns) * (panel_h + 44)
        x0, x1, y0, y1 = ox + pad_left, ox + panel_w - 10, oy + panel_h - 6, oy + 8

        def x(w):
            return x0 + (x1 - x0) * ((w - counts[0]) / (most - counts[0]) if most > counts[0] else 0.5)

        top_value = max([most] + [serial.unit_ns / r.unit_ns for r in runs if r.case.impl != "serial_unrolled"]) * 1.05

        def y(s):
            return y0 - (y0 - y1) * s / top_value

        body.append(_text(x0, oy, title, "panel"))
        for s in range(0, int(top_value) + 1):
            body.append(_line(x0, y(s), x1, y(s), "grid"))
            body.append(_text(x0 - 8, y(s) + 4, str(s), "small", "end"))
        body += [_line(x0, y0, x1, y0, "axis"), _line(x0, y0, x0, y1, "axis")]
        for w in counts:
            body.append(_text(x(w), y0 + 16, str(w), "small", "middle"))
        body.append(_text((x0 + x1) / 2, y0 + 31, "workers", "small", "middle"))
        body.append('<path class="ideal" d="M%.1f %.1f L%.1f %.1f"/>' % (x(counts[0]), y(counts[0]), x(most), y(most)))
        for impl in impls:
            points = sorted((r.case.workers, serial.unit_ns / r.unit_ns) for r in runs if r.case.impl == impl)
            if not points:
                continue
            path = " L".join("%.1f %.1f" % (x(w), y(s)) for w, s in points)
            body.append('<path d="M%s" fill="none" stroke="%s" stroke-width="2.2"/>' % (path, colours[impl]))
            body += ['<circle cx="%.1f" cy="%.1f" r="3.6" fill="%s"/>' % (x(w), y(s), colours[impl])
                     for w, s in points]
    cursor = 16
    for impl in impls:
        body.append('<rect x="%d" y="%d" width="12" height="12" rx="2" fill="%s"/>' % (cursor, height - 26, colours[impl]))
        body.append(_text(cursor + 17, height - 16, words[impl]))
        cursor += 32 + int(6.6 * len(words[impl]))
    return _svg(width, height, body, "Speed-up over the serial program against the number of workers")


def lines(title, x_title, panels, logarithmic=False):
    """One panel for each (title, {name: [(x, y)]}), lines between the points; y begins at 0. logarithmic: True for the
    x axis, "xy" for both."""
    palette = list(dict.fromkeys(colours.values()))[2:] + ["#CC79A7", "#8C6D1F", "#222222"]
    both = logarithmic == "xy"
    names = list(dict.fromkeys(name for _, drawn in panels for name in drawn))

    def look(name):
        # Those for whom there is no colour of their own share one, and are dashed.
        again, which = divmod(names.index(name), len(palette))
        return palette[which], ' stroke-dasharray="5 3"' if again else ""

    panel_w, panel_h, pad_top = (236, 210, 60) if len(panels) > 1 else (560, 300, 60)
    columns = min(len(panels), 3)
    rows = (len(panels) + columns - 1) // columns
    width = max(columns * (panel_w + 14) + 16, 480)
    legend, left, line = [], 16, 0
    for name in names:
        wide = 32 + int(6.6 * len(name))
        if left > 16 and left + wide > width:
            left, line = 16, line + 1
        legend.append((left, line))
        left += wide
    height = pad_top + rows * (panel_h + 44) + 40 + 20 * line
    body = [_text(16, 26, title, "title")]
    for n, (panel, drawn) in enumerate(panels):
        ox, oy = 16 + (n % columns) * (panel_w + 14), pad_top + (n // columns) * (panel_h + 44)
        x0, x1, y0, y1 = ox + 44, ox + panel_w - 10, oy + panel_h - 6, oy + 8
        points = [p for one in drawn.values() for p in one]
        xs = sorted({p[0] for p in points})
        top = max(p[1] for p in points) * 1.1 or 1.0  # all of them 0: any scale will do

        def place(v):
            return math.log(v) if logarithmic else v

        def x(v):
            span = place(xs[-1]) - place(xs[0])
            return x0 + (x1 - x0) * ((place(v) - place(xs[0])) / span if span > 0 else 0.5)

        low = 10 ** math.floor(math.log10(min(p[1] for p in points))) if both else 0

        def y(v):
            return y0 - (y0 - y1) * (math.log(v / low) / math.log(top / low) if both else v / top)

        if both:
            ticks = [low * 10**k for k in range(int(math.log10(top / low)) + 1)]
        else:
            step = 10 ** math.floor(math.log10(top))
            step = next(s for s in (step / 5, step / 2, step, 2 * step) if top / s <= 6)
            ticks = [k * step for k in range(int(top / step) + 1)]
        body.append(_text(x0, oy, panel, "panel"))
        for tick in ticks:
            body.append(_line(x0, y(tick), x1, y(tick), "axis" if tick == ticks[0] else "grid"))
            body.append(_text(x0 - 8, y(tick) + 4, "%g" % tick, "small", "end"))
        body.append(_line(x0, y0, x0, y1, "axis"))
        last = -100.0
        for v in xs:
            if x(v) - last < 26:
                continue
            last = x(v)
            word = "%gM" % (v / 2**20) if v >= 2**20 else "%gK" % (v / 1024) if v >= 1024 else "%g" % v
            body.append(_text(x(v), y0 + 16, word, "small", "middle"))
        body.append(_text((x0 + x1) / 2, y0 + 31, x_title, "small", "middle"))
        for name, drawn_line in drawn.items():
            colour, dashes = look(name)
            body.append('<path d="M%s" fill="none" stroke="%s" stroke-width="2.2"%s/>'
                        % (" L".join("%.1f %.1f" % (x(a), y(b)) for a, b in sorted(drawn_line)), colour, dashes))
            body += ['<circle cx="%.1f" cy="%.1f" r="3.6" fill="%s"/>' % (x(a), y(b), colour) for a, b in drawn_line]
    for name, (left, at) in zip(names, legend):
        y = height - 26 - 20 * (line - at)
        body.append('<path d="M%d %d h13" fill="none" stroke="%s" stroke-width="%d"%s/>'
                    % (left, y + 6, look(name)[0], 5 if look(name)[1] else 12, look(name)[1]))
        body.append(_text(left + 17, y + 10, name))
    return _svg(width, height, body, title)


def bars(title, unit, groups):
    """One group of horizontal bars for each (title, [(name, value)]), from one decade to the next on a logarithmic axis;
    all values above 0. A name has the same colour in every group."""
    palette = list(dict.fromkeys(colours.values()))[2:]
    names = list(dict.fromkeys(name for _, drawn in groups for name, _ in drawn))
    values = [v for _, drawn in groups for _, v in drawn]
    low = math.floor(math.log10(min(values)))
    if 10**low == min(values):
        low -= 1  # no bar without a length
    high = max(math.ceil(math.log10(max(values))), low + 1)
    width, left, right, bar, top = 640, 110, 90, 16, 66

    def x(v):
        return left + (width - left - right) * (math.log10(v) - low) / (high - low)

    height = top + sum(26 + (bar + 4) * len(drawn) for _, drawn in groups) + 34
    bottom = height - 30
    body = [_text(16, 26, title, "title"), _text(16, 45, "%s; logarithmic axis" % unit, "small")]
    for k in range(low, high + 1):
        body.append(_line(x(10.0**k), top - 8, x(10.0**k), bottom, "axis" if k == low else "grid"))
        body.append(_text(x(10.0**k), bottom + 16, "%g" % 10.0**k, "small", "middle"))
    y = top
    for group, drawn in groups:
        body.append(_text(16, y + 12, group, "panel"))
        y += 20
        for name, v in drawn:
            body.append(_text(left - 8, y + bar - 4, name, "", "end"))
            body.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="%s"/>'
                        % (left, y, x(v) - left, bar, palette[names.index(name) % len(palette)]))
            body.append(_text(x(v) + 6, y + bar - 4, "%.4g" % v if v < 1000 else "%.0f" % v))
            y += bar + 4
        y += 6
    return _svg(width, height, body, title)


def write(folder, results):
    for name, draw in (("bench_overhead", overhead), ("bench_speedup", speedup)):
        svg = draw(results)
        if svg is not None:
            files.write_whole(folder / (name + ".svg"), svg)

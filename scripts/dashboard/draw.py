"""Asks Prometheus for everything that a Grafana dashboard shows, and draws the dashboard as an SVG.

    draw.py PROMETHEUS_URL FROM TO DASHBOARD.json PICTURE.svg

Exit code 1, with a line for each, when a query fails or finds nothing though it should, and when
the alerts are not those expected. The picture is drawn in any case. It knows what the dashboard
uses (rows, time series, stats, tables) and refuses panels of other types.
"""

import json
import math
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

SCRAPE, STEP = 2, 2  # seconds; scripts/dashboard.sh sets the first
# As Grafana computes it from the two.
RATE_INTERVAL = f"{max(STEP + SCRAPE, 4 * SCRAPE)}s"

# Alerts that this load must raise. Others must neither fire nor wait to fire.
EXPECTED_ALERTS = {
    "RepriseDeadLetters": "firing",  # of the submission that is refused
    "RepriseModelErrors": "pending",  # a model that always fails, but not yet for 10 minutes
}

WIDTH, UNIT, GAP = 1600, 38, 8  # a unit of gridPos' height is 30 px and a gap, as in Grafana
# Grafana's colours by name, and the order in which its classic palette hands them out.
NAMED = {"green": "#73BF69", "yellow": "#FADE2A", "blue": "#5794F2", "orange": "#FF9830", "red": "#F2495C", "purple": "#B877D9"}
PALETTE = ["#73BF69", "#FADE2A", "#5794F2", "#FF9830", "#F2495C", "#B877D9", "#37872D", "#8AB8FF", "#E0B400", "#C4162A"]
TEXT, DIM, GRID, PANEL, PAGE = "#CCCCDC", "#8E8E9E", "#2C2F36", "#181B1F", "#111217"


# Prometheus


class Prometheus:
    def __init__(self, url):
        self.url = url

    def get(self, path, **parameters):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as e:
            raise ValueError(json.load(e)["error"]) from e


def answers(prometheus, panel, begin, end):
    """The series of a panel: (name, labels, [(time, value)]), without values that are no number."""
    found = []
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
        if re.search(r"\$\w*[a-z{]", query):
            raise ValueError(f"a variable that is not known here: {query}")
        if target.get("instant"):
            data = prometheus.get("query", query=query, time=end)
        else:
            data = prometheus.get("query_range", query=query, start=begin, end=end, step=STEP)
        series = []
        for one in data["result"]:
            values = [(t, float(v)) for t, v in one.get("values") or [one["value"]]]
            values = [(t, v) for t, v in values if math.isfinite(v)]
            if values:
                labels = one["metric"]
                name = re.sub(r"{{\s*(\w+)\s*}}", lambda m, l=labels: l.get(m[1], ""), target.get("legendFormat", ""))
                series.append((name, labels, values))
        if not series:  # the load lets something happen in every panel, and counters of faults begin with 0
            raise ValueError(f"no data for {query}")
        found += series
    return sorted(found, key=lambda s: s[0]) if len(panel["targets"]) == 1 else found


def wrong_alerts(prometheus):
    state = {}
    for group in prometheus.get("rules", type="alert")["groups"]:
        for rule in group["rules"]:
            state[rule["name"]] = rule["state"]
            if rule["health"] != "ok":
                yield f"alert {rule['name']}: {rule.get('lastError', rule['health'])}"
    for name in sorted(state.keys() | EXPECTED_ALERTS.keys()):
        expected = EXPECTED_ALERTS.get(name, "inactive")
        if state.get(name) != expected:
            yield f"alert {name} is {state.get(name, 'missing')}, not {expected}"


# Numbers


def number(value, decimals=None):
    if decimals is None:
        decimals = 0 if value == 0 or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{decimals}f}"
    return re.sub(r"\.?0+$", "", text) if "." in text else text


SCALES = {
    "s": [(60, 60, " min"), (1, 1, " s"), (1e-3, 1e-3, " ms"), (0, 1e-6, " µs")],
    "bytes": [(2**30, 2**30, " GiB"), (2**20, 2**20, " MiB"), (2**10, 2**10, " KiB"), (0, 1, " B")],
    "Bps": [(1e6, 1e6, " MB/s"), (1e3, 1e3, " kB/s"), (0, 1, " B/s")],
    "short": [(1e6, 1e6, " M"), (1e3, 1e3, " K"), (0, 1, "")],
    "ops": [(1e3, 1e3, "K ops/s"), (0, 1, " ops/s")],
}


def formatted(value, unit, decimals=None):
    if unit == "percentunit":
        return number(value * 100, decimals) + " %"
    if value == 0:
        return number(0) + (SCALES[unit][-1][2] if unit in ("ops", "Bps", "bytes") else " s" if unit == "s" else "")
    for least, factor, suffix in SCALES[unit]:
        if abs(value) >= least:
            return number(value / factor, decimals) + suffix
    raise AssertionError(unit)


def ticks(top, unit):
    """About four round steps from 0 to at least top, and the greatest."""
    factor = next((f for least, f, _ in SCALES.get(unit, [(0, 1, "")]) if top >= least), 1)
    if unit == "percentunit":
        factor = 0.01
    rough = top / factor / 4 or 1
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999) * factor
    count = max(1, math.ceil(top / step - 1e-9))
    return [i * step for i in range(count + 1)]


# Drawing


def label(x, y, text, size=12, color=TEXT, anchor="start", weight="normal"):
    weight = f' font-weight="{weight}"' if weight != "normal" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def text_width(text, size):
    return len(text) * size * 0.56


def path(points):
    """Without points in the middle of level parts, which make most of a quiet dashboard."""
    level = [0 < i < len(points) - 1 and f"{points[i - 1][1]:.1f}" == f"{y:.1f}" == f"{points[i + 1][1]:.1f}" for i, (_, y) in enumerate(points)]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for (x, y), skip in zip(points, level) if not skip)


def runs(values):
    """Parts of a series without gaps of missing scrapes."""
    part = []
    for t, v in values:
        if part and t - part[-1][0] > 1.5 * STEP:
            yield part
            part = []
        part.append((t, v))
    if part:
        yield part


def style(panel, name, index):
    """Colour, fill and dash of a series: the defaults, and what overrides say of its name."""
    look = {"color": PALETTE[index % len(PALETTE)], "custom.fillOpacity": panel["fieldConfig"]["defaults"]["custom"]["fillOpacity"], "custom.lineStyle": None}
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"] == {"id": "byName", "options": name}:
            for p in override["properties"]:
                look[p["id"]] = NAMED[p["value"]["fixedColor"]] if p["id"] == "color" else p["value"]
    dash = look["custom.lineStyle"]
    return look["color"], look["custom.fillOpacity"] / 100, f' stroke-dasharray="{" ".join(map(str, dash["dash"]))}"' if dash else ""


def legend(panel, names, x, y, w):
    """Lines of the legend from the bottom up; returns them and the height that they take."""
    rows, row, used = [], [], 0
    for i, name in enumerate(names):
        width = text_width(name, 11) + 26
        if row and used + width > w:
            rows.append(row)
            row, used = [], 0
        row.append((used, style(panel, name, i)[0], name))
        used += width
    rows.append(row)
    out = []
    for i, row in enumerate(rows):
        base = y - (len(rows) - 1 - i) * 16
        for dx, color, name in row:
            out.append(f'<rect x="{x + dx:.1f}" y="{base - 6:.1f}" width="12" height="3" rx="1.5" fill="{color}"/>')
            out.append(label(x + dx + 16, base, name, 11))
    return out, len(rows) * 16


def timeseries(panel, series, x, y, w, h, begin, end):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    out, legend_height = legend(panel, [s[0] for s in series], x + 12, y + h - 10, w - 24)
    lines = []  # name, [(time, value, from)]
    floor = {}
    for name, _, values in series:
        if panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal":
            lines.append([(t, floor.get(t, 0) + v, floor.get(t, 0)) for t, v in values])
            floor.update((t, v) for t, v, _ in lines[-1])
        else:
            lines.append([(t, v, 0) for t, v in values])
    marks = ticks(max((v for line in lines for _, v, _ in line), default=1) or 1, unit)
    names = [formatted(m, unit) for m in marks]
    left, right, top, bottom = x + 18 + max(text_width(n, 11) for n in names), x + w - 14, y + 38, y + h - 34 - legend_height
    at = lambda t, v: (left + (t - begin) / (end - begin) * (right - left), bottom - v / marks[-1] * (bottom - top))
    for mark, name in zip(marks, names):
        my = at(0, mark)[1]
        out.append(f'<path d="M{left:.1f} {my:.1f}H{right:.1f}" stroke="{GRID}"/>')
        out.append(label(left - 6, my + 4, name, 11, DIM, "end"))
    for seconds in range(0, int(end - begin) + 1, 30):
        mx = at(begin + seconds, 0)[0]
        out.append(f'<path d="M{mx:.1f} {top:.1f}V{bottom:.1f}" stroke="{GRID}"/>')
        out.append(label(mx, bottom + 16, f"{seconds // 60}:{seconds % 60:02}", 11, DIM, "middle"))
    for i, (line, (name, _, _)) in enumerate(zip(lines, series)):
        color, fill, dash = style(panel, name, i)
        under = dict((t, low) for t, _, low in line)
        for part in runs([(t, v) for t, v, _ in line]):
            upper = [at(t, v) for t, v in part]
            if len(part) == 1:
                out.append(f'<circle cx="{upper[0][0]:.1f}" cy="{upper[0][1]:.1f}" r="2" fill="{color}"/>')
                continue
            if fill:
                lower = [at(t, under[t]) for t, _ in reversed(part)] if any(under.values()) else [at(part[-1][0], 0), at(part[0][0], 0)]
                out.append(f'<path d="{path(upper + lower)}Z" fill="{color}" fill-opacity="{fill}"/>')
            out.append(f'<path d="{path(upper)}" fill="none" stroke="{color}" stroke-width="1.5" stroke-linejoin="round"{dash}/>')
    return out


def stat(panel, series, x, y, w, h, begin, end):
    defaults = panel["fieldConfig"]["defaults"]
    if not series:
        return [label(x + w / 2, y + h / 2 + 20, defaults["noValue"], 34, DIM, "middle", "500")]
    values = series[0][2]
    color = [s for s in defaults["thresholds"]["steps"] if s["value"] is None or values[-1][1] >= s["value"]][-1]["color"]
    color = NAMED[color]
    top = max(v for _, v in values) or 1
    at = lambda t, v: (x + (t - begin) / (end - begin) * w, y + h - 1 - v / top * h * 0.3)
    line = [at(t, v) for t, v in values]
    return [
        f'<path d="{path(line + [(line[-1][0], y + h - 1), (line[0][0], y + h - 1)])}Z" fill="{color}" fill-opacity=".12"/>',
        f'<path d="{path(line)}" fill="none" stroke="{color}" stroke-opacity=".6"/>',
        label(x + w / 2, y + h / 2 + 20, formatted(values[-1][1], defaults["unit"], defaults.get("decimals")), 36, color, "middle", "500"),
    ]


def table(panel, series, x, y, w, h, begin, end):
    organize = panel["transformations"][0]["options"]
    columns = sorted(organize["indexByName"], key=organize["indexByName"].get)
    defaults = panel["fieldConfig"]["defaults"]
    rows = [[organize["renameByName"].get(c, c) for c in columns]]
    rows += [[formatted(values[-1][1], defaults["unit"], defaults["decimals"]) if c == "Value" else labels[c] for c in columns] for _, labels, values in series]
    out = []
    for i, row in enumerate(rows):
        base = y + 56 + i * 28
        out.append(f'<path d="M{x + 10} {base + 9}H{x + w - 10}" stroke="{GRID}"/>')
        for j, cell in enumerate(row):
            last = j == len(row) - 1
            place = x + w - 16 if last else x + 16 + j * w * 0.36
            room = int(w * 0.36 / text_width(".", 12))
            cell = cell if len(cell) <= room else cell[: room - 1] + "…"
            out.append(label(place, base, cell, 12, TEXT if i else NAMED["blue"], "end" if last else "start", "normal" if i else "500"))
    return out


KINDS = {"timeseries": timeseries, "stat": stat, "table": table}


def draw(dashboard, found, begin, end):
    column = (WIDTH - GAP) / 24
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"]) * UNIT + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Inter, Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="{PAGE}"/>',
    ]
    for panel in dashboard["panels"]:
        g = panel["gridPos"]
        x, y, w, h = GAP + g["x"] * column, GAP + g["y"] * UNIT, g["w"] * column - GAP, g["h"] * UNIT - GAP
        if panel["type"] == "row":
            out.append(label(x + 4, y + 21, panel["title"], 16, TEXT, weight="500"))
            continue
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="2" fill="{PANEL}" stroke="{GRID}"/>')
        out.append(label(x + 12, y + 23, panel["title"], 13.5, TEXT, weight="500"))
        series = found[panel["id"]]
        if series or panel["type"] == "stat":
            out += KINDS[panel["type"]](panel, series, x, y, w, h, begin, end)
        else:
            out.append(label(x + w / 2, y + h / 2 + 10, "No data", 14, DIM, "middle"))
    return "\n".join(out + ["</svg>\n"])


def main():
    prometheus, begin, end = Prometheus(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    with open(sys.argv[4], encoding="utf-8") as file:
        dashboard = json.load(file)
    wrong, found, asked = [], {}, 0
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            continue
        if panel["type"] not in KINDS:
            sys.exit(f"panel {panel['title']}: drawing a {panel['type']} is not implemented")
        asked += len(panel["targets"])
        try:
            found[panel["id"]] = answers(prometheus, panel, begin, end)
        except ValueError as e:
            found[panel["id"]] = []
            wrong.append(f"panel {panel['title']}: {e}")
    wrong += wrong_alerts(prometheus)
    with open(sys.argv[5], "w", encoding="utf-8") as file:
        file.write(draw(dashboard, found, begin, end))
    print(f"{len(found)} panels, {asked} queries, {len(wrong)} things wrong")
    sys.exit("\n".join(wrong) or 0)


main()

"""Draw docs/images/architecture.svg: the path of a row of counts, and the layers of the package.

Boxes are light with dark text, and everything outside of them is a gray that is readable on white and on black, so the
picture works on pages of either color.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("images") / "architecture.svg"
WIDTH, HEIGHT = 1160, 716
FONT = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK, SOFT, GRAY = "#14263a", "#46586b", "#7d8a99"
STEP_FILL, LAYER_FILL, MODULE_FILL, ACCENT = "#e3ecf6", "#eceff3", "#ffffff", "#1f6fb2"

# What happens to the counts, and the file where it happens.
STEPS = (
    ("Read the file", "io/formats.py"),
    ("Check the counts", "counts.py"),
    ("Divide rows into blocks", "backend.py"),
    ("Learn topics", "topics/lda.py"),
    ("Choose starts", "model/starts.py"),
    ("Search from each start", "engine/search.py"),
    ("Prepare predictions", "model/prediction.py"),
    ("Set fitted attributes", "model/estimator.py"),
    ("Explain rows", "model/explanation.py"),
    ("Write the report", "report/page.py"),
)
SEARCH = 5  # the step whose parts are shown
SEARCH_PARTS = (
    ("screen moves", "sweep.py"),
    ("evaluate close calls", "sweep.py"),
    ("merge and split clusters", "search.py"),
)
# Layers from top to bottom, each with its modules and the numbers of the steps that happen there.
LAYERS = (
    (("cli", ()),),
    (("report", (10,)), ("paper", ())),
    (("plots", ()), ("anndata", ())),
    (("selection", ()), ("evaluation", ()), ("distributed", (3,))),
    (("model", (5, 7, 8, 9)),),
    (("engine", (6,)), ("topics", (4,)), ("baselines", ()), ("simulate", ()), ("text", ())),
    (("kernels", (6,)), ("gibbs", ()), ("backend", (3,)), ("monitor", ()), ("parameters", ())),
    (("io", (1,)),),
    (("counts", (2,)), ("store", ())),
    (("errors", ()),),
)


def box(x: float, y: float, width: float, height: float, fill: str, *, radius: float = 8) -> str:
    """Return a rounded box."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" fill="{fill}"/>'


def text(x: float, y: float, content: str, *, size: float = 15, fill: str = INK, **attributes: str) -> str:
    """Return a line of text; attributes are SVG's, with underscores for hyphens."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>{escape(content)}</text>'


def badge(x: float, y: float, number: int) -> str:
    """Return the number of a step in a circle."""
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="10.5" fill="{ACCENT}"/>'
    return circle + text(x, y + 4.5, str(number), size=12.5, fill="#ffffff", text_anchor="middle", font_weight="600")


def arrow(x: float, y: float, length: float) -> str:
    """Return an arrow that points down."""
    return f'<path d="M{x:g} {y:g} v{length:g} m-4 -5 l4 5 l4 -5" fill="none" stroke="{GRAY}" stroke-width="1.6"/>'


def path_of_a_row(left: float, top: float, width: float) -> list[str]:
    """Draw the steps from file to page, the parts of the search indented."""
    shapes = [text(left, top, "From a file to a report", size=18, fill=GRAY, font_weight="600")]
    y, height, gap, part = top + 22, 42, 16, 27
    for number, (what, where) in enumerate(STEPS, start=1):
        parts = SEARCH_PARTS if number == SEARCH + 1 else ()
        whole = height + part * len(parts) + (8 if parts else 0)
        shapes += [
            box(left, y, width, whole, STEP_FILL),
            badge(left + 23, y + height / 2, number),
            text(left + 44, y + 26, what, font_weight="600"),
            text(left + width - 14, y + 26, where, size=13, fill=SOFT, text_anchor="end", font_family=MONO),
        ]
        for place, (detail, file) in enumerate(parts):
            line = y + height + part * place
            shapes += [
                box(left + 44, line - 1, width - 58, part - 4, MODULE_FILL, radius=5),
                text(left + 54, line + 15, detail, size=13),
                text(left + width - 22, line + 15, file, size=12, fill=SOFT, text_anchor="end", font_family=MONO),
            ]
        y += whole
        if number < len(STEPS):
            shapes.append(arrow(left + width / 2, y + 1, gap - 2))
            y += gap
    return shapes


def layers(left: float, top: float, width: float) -> list[str]:
    """Draw the layers, with the steps in the modules where they happen."""
    shapes = [text(left, top, "Layers: each imports only from those below", size=18, fill=GRAY, font_weight="600")]
    y, height, gap = top + 22, 59.6, 6.3
    for modules in LAYERS:
        shapes.append(box(left, y, width, height, LAYER_FILL))
        each = (width - 12) / len(modules)
        for place, (name, steps) in enumerate(modules):
            x = left + 6 + each * place
            middle = x + each / 2
            first = middle - 13 * (len(steps) - 1)
            shapes += [
                box(x + 3, y + 6, each - 6, height - 12, MODULE_FILL, radius=6),
                text(middle, y + (24 if steps else 35), name, size=14, text_anchor="middle", font_family=MONO),
                *(badge(first + 26 * n, y + 40.5, step) for n, step in enumerate(steps)),
            ]
        y += height + gap
    return shapes


def main() -> None:
    """Write the picture."""
    shapes = [*path_of_a_row(20, 30, 520), *layers(590, 30, 550)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}" role="img">'
    title = "<title>The path of a row of counts through the package, and the layers of the package</title>"
    PICTURE.write_text("\n".join([head, title, *shapes, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The text of a figure as a reader sees it: how large, inside the picture, and not on top of other text."""

import itertools

from matplotlib.text import Text


def drawn_texts(figure):
    """The texts that are drawn; an axis also holds labels of ticks beyond its ends, which are not."""
    figure.draw_without_rendering()
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_major_ticks() if axis.get_visible() else []
            beyond |= {tick.label1 for tick in ticks if not low <= tick.get_loc() <= high}
            if not axis.get_visible():
                beyond |= set(axis.findobj(Text))
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in shown if text not in beyond]


def misplaced_texts(figure, smallest):
    """Say which texts are smaller than ``smallest`` points, leave the figure, or lie on another text."""
    shown = drawn_texts(figure)
    assert shown
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown]
    found = [f"small: {text.get_text()!r}" for text in shown if text.get_fontsize() < smallest]
    for words, box in boxes:
        if min(box.x0, box.y0) < 0 or box.x1 > figure.bbox.x1 or box.y1 > figure.bbox.y1:
            found.append(f"outside: {words!r}")
    for (one, box), (other, second) in itertools.combinations(boxes, 2):
        if box.overlaps(second):
            found.append(f"overlap: {one!r}, {other!r}")
    return found

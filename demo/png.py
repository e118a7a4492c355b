"""The picture of the cluster as a PNG, the counterpart of the one in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, Patch

from tutti.cli.output.picture import QUIET, Hold, by_kind, marks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from tutti.cli.output.picture import Block, ClusterPicture, Mark, NodeRow

SLOT = 0.34  # inches
PAD = 0.07  # of a slot, around what fills it
FREE, FRAME, INK = "#EEF0F2", "#D5D9DD", "#222222"
NAMES = 2.6  # slots wide, left of the first one
GAP = 1.2  # slots between two kinds
HEAD, FOOT = 2.6, 2.0  # slots above and below the nodes


def draw(picture: ClusterPicture, title: str, path: Path) -> None:
    """Write the picture to a file, whose folder is made if need be."""
    kinds = [nodes for _, nodes in by_kind(picture.nodes)]
    names = [max(NAMES, 0.31 * max(len(node.name) for node in nodes)) for nodes in kinds]
    sizes = [max(node.slots for node in nodes) for nodes in kinds]
    width = max(sum(names) + sum(sizes) + GAP * len(kinds), 24.0)
    height = HEAD + max(len(nodes) for nodes in kinds) + FOOT
    figure = plt.figure(figsize=(width * SLOT, height * SLOT), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    axes.text(0.6, 0.85, title, size=13, weight="bold", color=INK, va="center")
    looks = marks(picture.gangs)
    left = 0.6
    for nodes, name, slots in zip(kinds, names, sizes, strict=True):
        _kind(axes, nodes, left, name, picture.unit)
        for row, node in enumerate(nodes):
            _node(axes, node, left + name, HEAD + row, looks)
        left += name + slots + GAP
    _legend(axes, picture, looks)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _kind(axes: Axes, nodes: Sequence[NodeRow], left: float, name: float, unit: str) -> None:
    free, slots = sum(node.free for node in nodes), sum(node.slots for node in nodes)
    axes.text(left, HEAD - 0.55, nodes[0].kind, size=10.5, weight="bold", color=INK, va="center")
    text = f"{free} of {slots} {unit} free"
    axes.text(left + name, HEAD - 0.55, text, size=8.5, color=QUIET, va="center")


def _node(axes: Axes, node: NodeRow, left: float, top: float, looks: Mapping[str, Mark]) -> None:
    axes.text(left - 0.25, top + 0.5, node.name, size=8, color=INK, ha="right", va="center")
    order = list(looks)
    blocks = sorted(
        node.blocks, key=lambda b: (order.index(b.gang) if b.gang in looks else 99, -b.slots)
    )
    at = 0
    for block in blocks:
        _block(axes, block, left + at, top, looks)
        at += block.slots
    for slot in range(at, node.slots):
        _box(axes, left + slot, top, 1, facecolor=FREE, edgecolor=FRAME)


def _block(axes: Axes, block: Block, left: float, top: float, looks: Mapping[str, Mark]) -> None:
    mark = looks.get(block.gang)
    if mark is None or block.hold is Hold.FOREIGN:
        _box(axes, left, top, block.slots, facecolor="#C4C8CC", edgecolor="#A9AEB3")
        return
    is_kept = block.hold is Hold.RESERVED
    style = {"facecolor": "white" if is_kept else mark.colour, "edgecolor": mark.colour}
    _box(axes, left, top, block.slots, **style, hatch="////" if is_kept else None)
    for slot in range(block.slots):
        axes.text(
            left + slot + 0.5,
            top + 0.52,
            mark.letter,
            size=8.5,
            weight="bold",
            color=INK if is_kept else mark.ink,
            ha="center",
            va="center",
        )


def _box(axes: Axes, left: float, top: float, slots: int, **style: Any) -> None:
    """A box with round corners over so many slots."""
    shape = f"round,pad=0,rounding_size={2 * PAD}"
    corner, size = (left + PAD, top + PAD), (slots - 2 * PAD, 1 - 2 * PAD)
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, linewidth=0.8, **style))


def _legend(axes: Axes, picture: ClusterPicture, looks: Mapping[str, Mark]) -> None:
    blocks = [block for node in picture.nodes for block in node.blocks]
    entries = []
    for gang, mark in looks.items():
        held = sum(block.slots for block in blocks if block.gang == gang)
        text = f"{mark.letter}  {gang}: {held or 'none'}"
        entries.append(Patch(facecolor=mark.colour, edgecolor=mark.colour, label=text))
    others = sum(block.slots for block in blocks if block.hold is Hold.FOREIGN)
    entries.append(Patch(facecolor="#C4C8CC", edgecolor="#A9AEB3", label=f"others: {others}"))
    free = sum(node.free for node in picture.nodes)
    entries.append(Patch(facecolor=FREE, edgecolor=FRAME, label=f"free: {free}"))
    axes.legend(
        handles=entries,
        loc="lower left",
        bbox_to_anchor=(0.005, 0.0),
        ncols=len(entries),
        frameon=False,
        fontsize=9,
        handlelength=1.1,
        handleheight=1.1,
        columnspacing=1.6,
    )

"""Drawings of the chapter on the modern decoder. Numbers in them come in as arguments."""

import math
from collections.abc import Sequence
from itertools import pairwise

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import LEAST, Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

Rows = Sequence[tuple[str, bool, str]]
OLD: Rows = (  # a box or a plus, whether it is new, and the numbers that leave it for each token
    ("token + position", False, ""),
    ("LayerNorm", False, "D"),
    ("q, k, v", False, "3D"),
    ("average, Ω_{o}", False, "D"),
    ("+", False, ""),
    ("LayerNorm", False, "D"),
    ("MLP: GELU, 4D", False, "D"),
    ("+", False, ""),
)
NEW: Rows = (
    ("token", False, ""),
    ("RMSNorm", True, "D"),
    ("q, fewer k, v", True, "D + H_{kv}D_{h}"),
    ("QK-norm", True, ""),
    ("rotation", True, ""),
    ("average, Ω_{o}", False, "D"),
    ("+", False, ""),
    ("RMSNorm", True, "D"),
    ("SwiGLU, 8D/3", True, "D"),
    ("+", False, ""),
)
PASSED, VALUES = ("QK-norm", "rotation"), "H_{kv}D_{h}"  # queries and keys alone go through these


def two_blocks(*, title: str = "GPT-2's block, and one of today") -> Drawing:
    """Both blocks from top to bottom; what is new is in full colour, sizes stand at the arrows."""

    def said(rows: Rows) -> str:
        words = (f"{name} ({size} numbers)" if size else name for name, _, size in rows)
        return ", then ".join(words).replace("_{", "").replace("}", "")

    description = (
        f"Two columns of boxes beside their streams. Left, GPT-2: {said(OLD)}. Right, a block of today, "
        f"what is new in full colour: {said(NEW)}. A plus adds what stands above it to the stream. "
        f"An arrow leads the values v (HkvDh numbers) past {' and '.join(PASSED)}."
    )

    def column(scene: Scene, x: Pixels, room: Pixels, rows: Rows, height: Pixels) -> None:
        gap = (height - 30 * len(rows)) / (len(rows) - 1)
        line, left = x + 12, x + 30
        middle = left + 24
        scene.stream((line, 66), (line, 36 + height), role=STREAM)
        for i, (words, new, _) in enumerate(rows):
            y = 36 + i * (30 + gap)
            flow = rows[i - 1][2] if i else ""
            if flow:
                scene.text(middle + 9, y - gap / 2, flow, anchor="start", muted=True)
            if words == "+":
                scene.box(line - 12, y + 3, 24, 24, "+", role=STREAM, strength="full", radius=12, bold=True)
                scene.arrow((middle, y - gap), (middle, y + 15), (line + 13, y + 15))
                continue
            x0 = left if i else x  # the token lies on the stream, the others beside it
            spared = 24 if words in PASSED else 0  # the values go past it
            scene.box(
                x0, y, x + room - x0 - spared, 30, words, role=QUERY if new else None,
                strength="full" if new else "pale", radius=5, size=scene.size,
            )  # fmt: skip
            if i and rows[i - 1][0] in ("+", rows[0][0]):  # a sublayer begins: it reads the stream
                scene.arrow((line + 5, y - gap / 2 - 1), (middle, y - gap / 2 - 1), (middle, y))
            elif i:
                scene.arrow((middle, y - gap), (middle, y))
            if spared and rows[i - 1][0] not in PASSED:
                past = sum(name in PASSED for name, _, _ in rows)
                scene.arrow((x + room - 14, y - gap), (x + room - 14, y + past * (30 + gap)))
                scene.text(x + room - 22, y + 30 + gap / 2, f"v: {VALUES}", anchor="end", muted=True)

    def layout(room: Pixels, apart: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        each, height = (room - apart) / 2, 516.0
        for x, name, rows in ((0, "GPT-2, 2019", OLD), (each + apart, "a block of today", NEW)):
            scene.text(x + each / 2, 12, name, bold=True)
            column(scene, x, each, rows, height)
        scene.height = 36 + height + 6
        return scene

    return Drawing(title, description, layout(520, 80, 15), layout(PHONE, 10, 13.5))


def on_a_circle(
    queries: Sequence[Sequence[Pixels]],
    keys: Sequence[Sequence[Pixels]],
    *,
    title: str = "QK-norm brings queries and keys to one length",
) -> Drawing:
    """Arrows of two features before the norm, and after it on a circle of radius sqrt(2).

    Args:
        queries: pairs of numbers.
        keys: likewise.
        title: what it shows.

    Raises:
        ValueError: if one is no pair, or zero.
    """
    pairs = [("q", QUERY, [float(a) for a in q]) for q in queries] + [
        ("k", KEY, [float(a) for a in k]) for k in keys
    ]
    if any(len(pair) != 2 or not math.hypot(*pair) for _, _, pair in pairs):
        raise ValueError("a query or key in the plane is a pair of numbers, not both 0")
    root = math.sqrt(2)
    normed = [(name, role, [root * a / math.hypot(*pair) for a in pair]) for name, role, pair in pairs]
    lengths = ", ".join(f"{name} {number(math.hypot(*pair), 2)}" for name, _, pair in pairs)
    description = (
        "Two panels with arrows from one point, queries and keys of a head of width 2. Left, as the maps "
        f"make them, with lengths {lengths}. Right, after the norm, the same directions, all of length √2: "
        "they end on one circle, so that no score of two of them can be larger than √2. The right panel is "
        "enlarged."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, size: Pixels, arrows: list, circle: bool) -> None:
        unit = (size / 2 - 16) / max(math.hypot(*pair) for _, _, pair in arrows)
        cx, cy = x + size / 2, y + size / 2
        if circle:
            scene.face(cx, cy, root * unit, clock=False)
        for name, role, (a, b) in arrows:
            scene.arrow((cx, cy), (cx + a * unit, cy - b * unit), role=role, width=2.5)
            far = 12 / max(math.hypot(a, b) * unit, 1)
            scene.text(cx + a * unit * (1 + far), cy - b * unit * (1 + far), name, bold=True)

    def layout(room: Pixels, each: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        places = (room / 4 - each / 2, 3 * room / 4 - each / 2)
        heads = ("before the norm", "after it, enlarged: √2")
        for x, arrows, words, circle in zip(places, (pairs, normed), heads, (False, True), strict=True):
            scene.text(x + each / 2, 12, words, bold=True)
            panel(scene, x, 24, each, arrows, circle)
        scene.height = 24 + each
        return scene

    return Drawing(title, description, layout(520, 176, 15), layout(PHONE, 160, 14))


def shared_heads(
    n_heads: int,
    shares: Sequence[int],
    costs: Sequence[str],
    *,
    title: str = "Heads of queries that share a head of keys and values",
) -> Drawing:
    """A row of query heads above their key heads, for each number of those.

    Args:
        n_heads: H.
        shares: the numbers of key heads, each a divisor of H.
        costs: what the cache holds for a token, a text for each.
        title: what it shows.

    Raises:
        ValueError: if a number does not divide H, or the costs are not as many.
    """
    if any(n < 1 or n_heads % n for n in shares):
        raise ValueError(f"heads of keys must divide {n_heads}, got {listed(shares, 'shares')}")
    said = "; ".join(
        f"{n} {'head' if n == 1 else 'heads'} of keys: {cost}" for n, cost in zip(shares, costs, strict=True)
    )
    description = (
        f"{len(shares)} rows. In each, {n_heads} query heads stand above the heads of keys and values that "
        f"they read; a line leads from every query head to its key head, neighbours to the same. {said}."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        step = room / n_heads
        for row, (n, cost) in enumerate(zip(shares, costs, strict=True)):
            y = row * 128
            name = {n_heads: "one each", 1: "one for all"}.get(n, f"groups of {n_heads // n}")
            scene.text(0, y + 10, f"{name}: {n} of {n_heads}", anchor="start", bold=True)
            scene.text(room, y + 10, cost, anchor="end", muted=True)
            width = n_heads // n * step
            for head in range(n_heads):
                x = (head + 0.5) * step
                group = head * n // n_heads
                scene.line((x, y + 52), ((group + 0.5) * width, y + 80), role=QUERY)
                scene.box(x - step / 2 + 3, y + 24, step - 6, 28, "q", role=QUERY, radius=5)
            for group in range(n):
                x = (group + 0.5) * width
                scene.box(x - step / 2 + 3, y + 80, step - 6, 28, "k, v", role=KEY, strength="full", radius=5)
        scene.height = 128 * len(shares) - 16
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13))


def latent(
    d_model: int,
    d_latent: int,
    d_rotary: int,
    n_heads: int,
    *,
    title: str = "One latent a token, in two orders",
) -> Drawing:
    """Latent attention of one head: keys and values made of the latent, or the query moved to it.

    Args:
        d_model: D.
        d_latent: the width of the latent.
        d_rotary: the width of the rotary key.
        n_heads: H.
        title: what it shows.
    """
    description = (
        f"Two columns, both for head h of {n_heads}. Each begins with a token x, {d_model} numbers, of which "
        f"maps make the latent c, {d_latent} numbers, and beside it the rotary key r, {d_rotary} numbers: "
        "only these are kept, and in both columns an arrow leads from r to the weights. Left, expanded: Ωk "
        "makes the head's key of c and Ωv its value; the query q meets the key and its second part q′ "
        "meets r, which gives the weights, and values are averaged with them. Right, absorbed: the "
        "transposed Ωk is applied to the query instead, which then meets the latent itself; one arrow "
        "leads from the latents to the weights, as keys, and another to the average, as values: "
        "latents are averaged, and Ωv is applied to the average, once."
    )

    def read(scene: Scene, x: Pixels, top: Pixels, left: Pixels, what: tuple[str, str], *at: Pixels) -> None:
        """One line down from a box, with an arrow to the weights and one to what is averaged."""
        scene.line((x, top), (x, at[-1]))
        for words, y in zip(what, at, strict=True):
            scene.arrow((x, y), (left, y))
            scene.text((x + left) / 2, y - 10, words, muted=True)

    def panel(scene: Scene, x: Pixels, y: Pixels, each: Pixels, name: str) -> None:
        a, b, w = x + each * 0.25, x + each * 0.75, each * 0.44
        left, right = a - w / 2, b - w / 2
        scene.text(x + each / 2, y + 10, name, bold=True)
        scene.token(b, y + 26, "token x", w, role=STREAM)
        thin, end = 34.0, right + w  # the rotary key stands at the right end, the latent takes the rest
        scene.box(left, y + 26, thin, 30, "q′", role=QUERY, radius=5)  # what meets it, at the left end
        scene.arrow((left + thin / 2, y + 56), (left + thin / 2, y + (208 if name == "expanded" else 160)))
        a_q = left + w / 2 + thin / 2 + 3
        w_c, r = w - thin - 6, end - thin / 2
        scene.box(left + thin + 6, y + 26, w_c, 30, "query q", role=QUERY, radius=5)
        b = right + w_c / 2
        scene.arrow((b, y + 56), (b, y + 66))
        scene.map(right, y + 66, w_c, 30, "Ω_{c}")
        scene.arrow((b, y + 96), (b, y + 112))
        scene.box(right, y + 112, w_c, 30, "latent c", role=KEY, strength="full", radius=5)
        scene.arrow((r, y + 56), (r, y + 66))
        scene.map(end - thin, y + 66, thin, 30, "Ω_{kr}")
        scene.arrow((r, y + 96), (r, y + 112))
        scene.box(end - thin, y + 112, thin, 30, "r", role=KEY, strength="full", radius=5)
        reads = y + (231 if name == "expanded" else 184)  # below the keys' arrow, in the same weights
        scene.arrow((r, y + 142), (r, reads), (a + w / 2 + 2, reads), role=KEY)
        if name == "expanded":
            scene.arrow((b, y + 142), (b, y + 160))
            scene.box(right, y + 160, w_c, 30, "Ω_{k} c, Ω_{v} c", role=KEY, radius=5)
            read(scene, b, y + 190, a + w / 2 + 2, ("keys", "values"), y + 216, y + 276)
            scene.arrow((a_q, y + 56), (a_q, y + 208))
            scene.box(left, y + 208, w, 30, "weights", role=WEIGHTS, radius=5)
            scene.arrow((a, y + 238), (a, y + 261))
            scene.box(left, y + 261, w, 30, "average of Ω_{v}c", role=VALUE, radius=5)
            return
        scene.arrow((a_q, y + 56), (a_q, y + 112))
        scene.box(left + thin + 6, y + 112, w_c, 30, "Ω_{k}^{T} q", role=QUERY, radius=5)
        scene.arrow((a_q, y + 142), (a_q, y + 160))
        read(scene, b, y + 142, a + w / 2 + 2, ("keys", "values"), y + 169, y + 223)
        scene.box(left, y + 160, w, 30, "weights", role=WEIGHTS, radius=5)
        scene.arrow((a, y + 190), (a, y + 208))
        scene.box(left, y + 208, w, 30, "average of c", role=VALUE, radius=5)
        scene.arrow((a, y + 238), (a, y + 261))
        scene.box(left, y + 261, w, 30, "Ω_{v} (average)", role=VALUE, radius=5)

    def layout(room: Pixels, across: bool, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        each = (room - 40) / 2 if across else room
        for i, name in enumerate(("expanded", "absorbed")):
            panel(scene, i * (each + 40) if across else 0, 0 if across else i * 316, each, name)
        bottom = 291 if across else 607
        kept = f"kept for a token: c and r, {d_latent} + {d_rotary} numbers"
        scene.text(room / 2, bottom + 20, kept, muted=True)
        scene.height = bottom + 30
        return scene

    return Drawing(title, description, layout(640, True, 15), layout(PHONE, False, 14))


def caches(
    kept: Sequence[tuple[str, int]],
    *,
    title: str = "Numbers that a cache keeps for a token, in one block",
) -> Drawing:
    """A bar for each way of keeping keys and values, as long as what it keeps.

    Args:
        kept: names of ways, and the numbers that each keeps for a token and block.
        title: what it shows.

    Raises:
        ValueError: if a way keeps nothing.
    """
    if any(numbers < 1 for _, numbers in kept):
        raise ValueError("a cache keeps at least one number")
    most = max(numbers for _, numbers in kept)
    said = "; ".join(f"{name}: {numbers:,}" for name, numbers in kept)
    description = f"{len(kept)} bars, as long as the numbers kept for a token in one block. {said}."

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        for row, (name, numbers) in enumerate(kept):
            y = row * 50
            scene.text(0, y + 10, name, anchor="start")
            scene.text(room, y + 10, f"{numbers:,}", anchor="end", bold=True)
            scene.box(0, y + 22, max(2, room * numbers / most), 14, role=KEY, strength="full", radius=2)
        scene.height = 50 * len(kept) - 12
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))


def experts(
    token: str,
    shares: Sequence[Pixels],
    k: int,
    *,
    title: str = "A token and two of its experts",
) -> Drawing:
    """A token, the router's probabilities as bars, the experts of which k read the token, and their sum.

    Args:
        token: its word.
        shares: the probabilities, one for each expert.
        k: how many are used.
        title: what it shows.

    Raises:
        ValueError: if k is not between 1 and the number of experts.
    """
    shares = [float(p) for p in shares]
    if not 1 <= k <= len(shares):
        raise ValueError(f"a token cannot use k={k} of {len(shares)} experts")
    best = sorted(range(len(shares)), key=lambda i: -shares[i])[:k]
    total = math.fsum(shares[i] for i in best)
    gates = {i: number(shares[i] / total, 2) for i in best}
    listing = ", ".join(f"{i + 1}: {number(p, 2)}" for i, p in enumerate(shares))
    used = " and ".join(f"expert {i + 1} with gate {gates[i]}" for i in sorted(best))
    description = (
        f'The token "{token}", a vector x, goes to the router, which gives each of {len(shares)} experts a '
        f"probability, drawn as bars: {listing}. The {k} largest are used, in full colour: {used}. A line "
        "leads past the router from the token to these experts, which read x. Their outputs, times the "
        "gates, are summed. The others compute nothing for this token."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        wide = room - 26  # on the right the token itself goes down to its experts
        step, middle, rail = wide / len(shares), wide / 2, room - 9
        xs = [(i + 0.5) * step for i in range(len(shares))]
        scene.token(middle, 2, f"“{token}”", 110, role=STREAM)
        scene.arrow((middle, 32), (middle, 50))
        scene.text(middle + 14, 41, "x", muted=True)
        scene.box(0, 50, wide, 28, "router: softmax(Ω_{e} x)", radius=5)
        base = 150.0
        scene.line((0, base), (wide, base))
        scene.line((middle + 55, 17), (rail, 17), (rail, base + 33), (xs[min(best)], base + 33), role=STREAM)
        scene.text(rail - 12, 29, "x", muted=True)
        for i, (x, p) in enumerate(zip(xs, shares, strict=True)):
            scene.bar(x, base, 0.5 * step, 50 * p / max(shares), WEIGHTS)
            scene.text(x, base + 12, number(p, 2), size=max(LEAST, size - 1), muted=i not in best)
            on = i in best
            if on:
                scene.arrow((x, base + 33), (x, base + 54), role=STREAM, width=2.5)
            scene.box(
                x - step / 2 + 3, base + 54, step - 6, 34, f"{i + 1}",
                role=QUERY if on else None, strength="full" if on else "faint", radius=5,
            )  # fmt: skip
            if on:
                scene.arrow((x, base + 88), (middle, base + 132), role=WEIGHTS, width=2.5)
                side = -1 if x < middle else 1
                scene.text(x + side * 6, base + 108, f"× {gates[i]}", anchor="end" if side < 0 else "start")
        scene.token(middle, base + 134, "sum", 110, role=VALUE)
        scene.text(0, base + 148, "1 to " + f"{len(shares)}: MLPs", anchor="start", muted=True)
        scene.height = base + 166
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13))


def steps_of(
    gradient: Sequence[Sequence[Pixels]],
    steps: Sequence[tuple[str, Sequence[Sequence[Pixels]]]],
    *,
    token: Sequence[Pixels] | None = None,
    title: str = "Where three steps move the tokens of the unit circle",
) -> Drawing:
    """The unit circle under matrices 2 x 2, each scaled so that its furthest point lies at 1.

    Args:
        gradient: G, for the description.
        steps: name and matrix of each step.
        token: two numbers, a direction; an arrow shows how far the token of length 1 there is moved.
        title: what it shows.

    Raises:
        ValueError: if a matrix is not 2 x 2, or zero.
    """
    curves = []
    for name, rows in steps:
        matrix = [[float(a) for a in row] for row in table(rows, "steps")]
        if len(matrix) != 2 or len(matrix[0]) != 2:
            raise ValueError("the circle is drawn for matrices 2 x 2")
        angles = [math.tau * i / 72 for i in range(73)]
        points = [[row[0] * math.cos(t) + row[1] * math.sin(t) for row in matrix] for t in angles]
        radii = [math.hypot(*p) for p in points]
        if not max(radii):
            raise ValueError("a step of zero moves nothing")
        moved = None
        if token is not None:
            size = math.hypot(*token) * max(radii)
            moved = [sum(a * x for a, x in zip(row, token, strict=True)) / size for row in matrix]
        curves.append((name, [[a / max(radii) for a in p] for p in points], min(radii) / max(radii), moved))
    narrow = "; ".join(f"{name}: the nearest at {number(least, 2)}" for name, _, least, _ in curves)
    arrows = "; ".join(f"{name}: {number(math.hypot(*to), 2)}" for name, _, _, to in curves if to)
    given = ", ".join("(" + ", ".join(number(a, 1) for a in row) + ")" for row in gradient)
    description = (
        "Panels with a dashed unit circle and the closed curve on which a step puts the tokens of the "
        f"circle. G has the rows {given}. Each step is scaled so that the furthest token moves by "
        f"1. {narrow}. "
        "Only the last curve is the circle itself."
    )
    if arrows:
        description += f" An arrow shows how far one token is moved. {arrows}."

    def layout(room: Pixels, columns: int, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        each = room / columns
        radius = min(each / 2 - 14, 78)
        for i, (name, points, least, moved) in enumerate(curves):
            x, y = (i % columns + 0.5) * each, 30 + radius + i // columns * (2 * radius + 66)
            scene.text(x, y - radius - 16, name, bold=True)
            circle = [(x + radius * math.cos(t / 6), y + radius * math.sin(t / 6)) for t in range(39)]
            for a, b in list(pairwise(circle))[::2]:
                scene.line(a, b)
            role: Role = QUERY if least > 0.999 else STREAM
            scene.line(*((x + radius * a, y - radius * b) for a, b in points), role=role, width=3)
            if moved:
                to = (x + radius * moved[0], y - radius * moved[1])
                scene.arrow((x, y), to, role=VALUE, width=2.5)
            scene.text(x, y + radius + 18, f"least {number(least, 2)}", muted=True)
        rows_of = math.ceil(len(curves) / columns)
        scene.height = 30 + 2 * radius + 30 + (rows_of - 1) * (2 * radius + 66)
        return scene

    return Drawing(title, description, layout(600, 3, 15), layout(PHONE, 3, 13))


SINCE: Sequence[tuple[str, bool, str]] = (  # a box or a plus beside the stream, whether it is new, its block
    ("norm, gain 1 + w", True, "block 1"),
    ("q, k, v", False, "block 1"),
    ("average, Ω_{o}", False, "block 1"),
    ("+", False, "block 1"),
    ("q, k, v", False, "a later block"),
    ("½ v + ½ v of block 1", True, "a later block"),
    ("average", False, "a later block"),
    ("gate × average, Ω_{o}", True, "a later block"),
    ("+", False, "a later block"),
)


def what_came_since(*, title: str = "What came since, along the stream") -> Drawing:
    """From the token to the logits: where each newer part stands."""
    description = (
        "The residual stream runs from top to bottom. At its start the token's row and, in full colour, rows "
        "of its last 2 and of its last 3 characters are added. Beside the stream stand attention of block 1 "
        "and of a later block; MLPs are left out. In full colour: the norm has the gain 1 + w; the values of "
        "block 1 are kept and, along a line on the right, mixed half and half into the values of the later "
        "block; and what that block averages is multiplied by a gate, which is made of the stream. At the "
        "end the stream gives the next token, and a small block beside it, in full colour, the one after it."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        line, left, rail, pitch = 14.0, 74.0, room - 10, 42
        width, top = rail - 26 - left, 84.0
        middle = left + 24
        scene.token(line + 40, 2, "token", 84)
        scene.box(left + 40, 2, rail - left - 30, 30, "rows of the last 2, of the last 3", role=QUERY,
                  strength="full", radius=5)  # fmt: skip
        end = top + len(SINCE) * pitch + 2
        scene.stream((line, 50), (line, end), role=STREAM)
        scene.arrow((line, 32), (line, 46))
        scene.arrow((left + 60, 32), (left + 60, 50), (line + 5, 50))
        for i, (words, new, block) in enumerate(SINCE):
            y = top + i * pitch
            first = not i or SINCE[i - 1][2] != block
            if words == "+":
                scene.box(line - 12, y - 4, 24, 24, "+", role=STREAM, strength="full", radius=12, bold=True)
                scene.arrow((middle, y - 12), (middle, y + 8), (line + 13, y + 8))
                continue
            if first:
                scene.text(left + width, y - 14, block, anchor="end", bold=True)
                scene.arrow((line + 5, y - 12), (middle, y - 12), (middle, y))
            else:
                scene.arrow((middle, y - 12), (middle, y))
            scene.box(left, y, width, 30, words, role=QUERY if new else None,
                      strength="full" if new else "pale", radius=5)  # fmt: skip
        kept, mixed, gated = (top + i * pitch + 15 for i in (1, 5, 7))
        edge = left + width
        scene.arrow((edge, kept), (rail, kept), (rail, mixed), (edge, mixed), role=VALUE, width=2.5)
        scene.text(rail - 10, kept + 22, "v", anchor="end", muted=True)
        scene.arrow((line + 5, gated), (left, gated), role=QUERY, width=2.5)
        scene.arrow((line, end), (line, end + 18))
        scene.box(0, end + 18, 128, 30, "the next token", role=None, radius=5)
        scene.arrow((128, end + 33), (156, end + 33))
        scene.box(
            156, end + 18, room - 157, 30, "block: the one after", role=QUERY, strength="full", radius=5
        )
        scene.height = end + 52
        return scene

    return Drawing(title, description, layout(480, 15), layout(PHONE, 13.5))

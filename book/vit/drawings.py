"""Drawings of the chapter on the vision transformer. Images and numbers in them come in as arguments."""

from collections.abc import Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Scene, Strength
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

Grey = Sequence[Sequence[Pixels]]


def _grey(image: Any, what: str = "an image", *, halved: bool = False) -> list[list[float]]:
    """Rows of ink, 0 for paper and 1 for black; halved, the means of two by two if there are more than 16."""
    cells = table(image.tolist() if hasattr(image, "tolist") else image, what)
    rows = [[float(ink) for ink in row] for row in cells]
    if halved and len(rows) > 16 and len(rows) % 2 == 0 and len(rows[0]) % 2 == 0:
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [[(a[j] + a[j + 1] + b[j] + b[j + 1]) / 4 for j in range(0, len(a), 2)] for a, b in pairs]
    return rows


def _cuts(scene: Scene, x: Pixels, y: Pixels, side: Pixels, parts: int) -> None:
    """The lines between the patches, and around them."""
    for k in range(parts + 1):
        scene.line((x + k * side / parts, y), (x + k * side / parts, y + side), width=1)
        scene.line((x, y + k * side / parts), (x + side, y + k * side / parts), width=1)


def _patches(image: Any, parts: int) -> list[list[list[float]]]:
    """The rows of ink of each patch, in reading order."""
    cells = table(image.tolist() if hasattr(image, "tolist") else image, "an image")
    each = len(cells) // parts
    corners = [(each * i, each * j) for i in range(parts) for j in range(parts)]
    return [[[float(x) for x in row[j : j + each]] for row in cells[i : i + each]] for i, j in corners]


def image_to_class(
    image: Any,
    parts: int,
    sizes: tuple[int, int],
    blocks: int,
    probabilities: Sequence[Pixels],
    *,
    title: str = "From an image to a class",
) -> Drawing:
    """Patches become columns, a class token comes in front, places are added, an encoder reads, one answers.

    Args:
        image: rows of ink from 0 to 1.
        parts: how many patches stand side by side; the image is square.
        sizes: how many numbers a patch has, and how many a column.
        blocks: of the encoder.
        probabilities: of the classes 0, 1, 2 and so on.
        title: what it shows.

    Raises:
        ValueError: if there are no patches, or no classes.
    """
    grey, shares = _grey(image), listed(probabilities, "probabilities")
    inks = _patches(image, parts) if parts > 0 else []
    if parts < 1 or not shares:
        raise ValueError(f"an image has patches and classes, got {parts=} and {len(shares)} probabilities")
    patches, (pixels, width) = parts**2, sizes
    best = max(range(len(shares)), key=lambda k: shares[k])
    sure = number(shares[best], 2)
    description = (
        f"A handwritten digit is cut into {parts} by {parts} patches. Each becomes a column of {pixels} "
        f"numbers, and a linear map makes {width} of them. A learned class token c stands in front, and a "
        f"learned vector for its place is added to every column. An encoder of {blocks} blocks reads the "
        f"{patches + 1} columns. "
        f"What comes out in the class token's place gives the probabilities of {len(shares)} classes; class "
        f"{best} has {sure}."
    )

    def columns(
        scene: Scene, x: Pixels, y: Pixels, step: Pixels, height: Pixels, role: Role, first: Role | None,
        shade: Pixels = 0.2,
    ) -> None:  # fmt: skip
        """A row of columns; the one in front, the class token's, has a role of its own, or is not drawn."""
        for n in range(1, patches + 1):
            scene.box(x + n * step, y, 0.78 * step, height, radius=2, role=role, shade=shade)
        if first:
            strength: Strength = "pale" if first == role else "full"
            scene.box(x, y, 0.78 * step, height, radius=2, role=first, strength=strength)

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, phone = Scene(room, size=size), room == PHONE
        side = 132.0
        x = 0.0 if phone else side + 52
        step = (room - x) / (patches + 1)
        scene.picture(0, 22, side, grey)
        _cuts(scene, 0, 22, side, parts)
        scene.text(0, 8, f"{patches} patches", anchor="start", bold=True)
        top = side + 62 if phone else 22
        scene.text(x + step, top - 14, "1", muted=True, anchor="start")
        scene.text(room - 0.22 * step, top - 14, f"{patches}", muted=True, anchor="end")
        for n, ink in enumerate(inks, start=1):
            scene.box(x + n * step, top + 10, 0.86 * step, 0.86 * step, role=KEY, strength="plain")
            scene.picture(x + n * step, top + 10, 0.86 * step, ink)
        if phone:
            scene.arrow((step * 3, top - 32), (step * 3, top - 6))
            scene.text(step * 3 + 10, top - 20, "reading order", anchor="start", muted=True)
        else:
            scene.arrow((side + 10, top + 22), (x + 0.6 * step, top + 22))
            scene.text(x + step * 3, top - 14, "reading order", anchor="start", muted=True)
        middle, y = x + (room - x) / 2, top + 52
        scene.arrow((middle, y), (middle, y + 24))
        scene.text(middle + 12, y + 12, f"Ω: {pixels} → {width} numbers", anchor="start", muted=True)
        y += 30
        columns(scene, x, y, step, 40, KEY, STREAM, 0.45)
        scene.text(x + 0.39 * step, y - 12, "c", bold=True)
        y += 46
        scene.text(x + 0.39 * step, y + 8, "+", bold=True)
        y += 20
        columns(scene, x, y, step, 18, VALUE, VALUE)
        words = f"places: {patches + 1} columns of {width} numbers"
        scene.text(x, y + 34, words, anchor="start", muted=True)
        y += 52
        scene.box(x, y, room - x, 38, f"encoder, {blocks} blocks", radius=6, bold=True)
        scene.arrow((x + 0.39 * step, y + 40), (x + 0.39 * step, y + 62))
        scene.text(x + 0.39 * step + 12, y + 52, "W, b", anchor="start", muted=True)
        base, wide = y + 118, (room - x) / len(shares)
        for k, share in enumerate(shares):
            scene.bar(x + (k + 0.5) * wide, base, 0.6 * wide, max(1.5, 46 * share), QUERY)
            scene.text(x + (k + 0.5) * wide, base + 14, str(k))
        spot = x + (best + 0.5) * wide
        right = best < len(shares) / 2
        scene.text(spot + (0.4 if right else -0.4) * wide, base - 38, sure, bold=True,
                   anchor="start" if right else "end")  # fmt: skip
        scene.height = base + 26
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def _tenths(inks: Sequence[float]) -> list[str]:
    """Ink as a digit, 0 for paper and 9 for black."""
    return [str(round(9 * ink)) for ink in inks]


def moved_digit(image: Any, row: int, *, title: str = "The same digit, moved") -> Drawing:
    """An image, the same image two pixels further right, and the numbers in one row of each, from 0 to 9.

    Args:
        image: rows of ink from 0 to 1.
        row: whose numbers are shown.
        title: what it shows.

    Raises:
        ValueError: if the image has no such row.
    """
    cells = table(image.tolist() if hasattr(image, "tolist") else image, "an image")
    if not 0 <= row < len(cells):
        raise ValueError(f"an image of {len(cells)} rows, got the row {row}")
    plain = [[float(ink) for ink in line] for line in cells]
    images = {"as it is": plain, "moved": [[0.0, 0.0, *line[:-2]] for line in plain]}
    words_of_row = f"the row's {len(plain[0])} numbers"
    inked = [{j for j, tenth in enumerate(_tenths(rows[row])) if tenth != "0"} for rows in images.values()]
    both = inked[0] & inked[1]
    description = (
        f"A handwritten digit and the same digit two pixels further right. Of the {len(plain[0])} numbers in "
        f"the marked row {len(inked[0])} hold ink, before and after; {len(both)} places hold ink both times. "
        + " ".join(f"{name}: {' '.join(_tenths(rows[row]))}." for name, rows in images.items())
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, phone, y = Scene(room, size=size), room == PHONE, 0.0
        side = 112.0
        x = 0.0 if phone else side + 40
        cell = (room - x) / len(plain[0])
        for words, rows in images.items():
            scene.text(0, y + 8, words, anchor="start", bold=True)
            scene.picture(0, y + 22, side, _grey(rows))
            scene.box(0, y + 22, side, side)
            step = side / len(rows)
            scene.box(0, y + 22 + row * step - 2, side, step + 4, role=QUERY, strength="plain")
            level = y + 22 + row * step + step / 2
            top = y + side + 58 if phone else level - 15
            if phone:
                scene.arrow((side + 8, level), (side + 30, level), (side + 30, top - 6))
                scene.text(side + 42, y + side + 30, words_of_row, anchor="start", muted=True)
            else:
                scene.arrow((side + 6, level), (x - 6, level))
                scene.text(x, top - 14, words_of_row, anchor="start", muted=True)
            for j, (ink, words) in enumerate(zip(rows[row], _tenths(rows[row]), strict=True)):
                scene.box(x + j * cell, top, cell, 30, words, role=KEY, shade=0.5 * ink)
            y += side + (112 if phone else 40)
        scene.height = y - 12
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def moved_patch(image: Any, parts: int, which: int, *, title: str = "A move makes other patches") -> Drawing:
    """An image cut into patches, as it is and two pixels further right; one patch of each, and its column.

    Args:
        image: rows of ink from 0 to 1.
        parts: how many patches stand side by side; the image is square.
        which: the patch that is shown, counted from 1 in reading order.
        title: what it shows.

    Raises:
        ValueError: if there is no such patch.
    """
    plain = _grey(image)
    if not 1 <= which <= parts**2:
        raise ValueError(f"there are patches 1 to {parts**2}, got {which}")
    images = {"as it is": plain, "moved": [[0.0, 0.0, *line[:-2]] for line in plain]}
    each = len(plain) // parts
    description = (
        f"A handwritten digit in {parts} by {parts} patches, and the digit two pixels further right in the "
        f"same grid. Patch {which} of each is enlarged, {each} by {each} pixels, and written as a column of "
        f"{each**2} numbers. The two columns differ."
    )
    down, across = divmod(which - 1, parts)

    def panel(scene: Scene, x: Pixels, y: Pixels, words: str, rows: Grey) -> None:
        side, large, high = 112.0, 84.0, 147.0
        ink = _patches(rows, parts)[which - 1]
        scene.text(x, y + 8, words, anchor="start", bold=True)
        scene.picture(x, y + 24, side, rows)
        _cuts(scene, x, y + 24, side, parts)
        cell = side / parts
        left, top = x + across * cell, y + 24 + down * cell
        scene.box(left, top, cell, cell, role=QUERY, shade=0.15)
        middle = y + 24 + side / 2
        start = x + side + 28
        scene.arrow((x + side + 4, middle), (start - 4, middle))
        scene.picture(start, middle - large / 2, large, ink)
        scene.box(start, middle - large / 2, large, large, role=QUERY, strength="plain")
        scene.text(start + large / 2, middle + large / 2 + 14, f"patch {which}", muted=True)
        column = start + large + 30
        scene.arrow((start + large + 4, middle), (column - 4, middle))
        inks, step = [amount for row in ink for amount in row], high / each**2
        for k, amount in enumerate(inks):
            if amount > 0.08:
                scene.box(column, y + 7 + k * step, 18, step, role=KEY, shade=0.9 * amount)
        scene.box(column, y + 7, 18, high)
        scene.text(column + 24, y + 18, "1", anchor="start", muted=True)
        scene.text(column + 24, y + high, f"{each**2}", anchor="start", muted=True)

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, phone = Scene(room, size=size), room == PHONE
        for k, (words, rows) in enumerate(images.items()):
            panel(scene, 0 if phone else k * 370, 172 * k if phone else 0, words, rows)
        scene.height = 172 + 160 if phone else 160
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def what_one_sees(side: int, kernel: int = 3, *, title: str = "What one place can see") -> Drawing:
    """The places that reach one place through one and two layers: of a convolution, and of attention.

    Args:
        side: places in a row, and rows.
        kernel: the side of the kernel, an odd number.
        title: what it shows.

    Raises:
        ValueError: if the kernel is even, or two layers of it would see everything.
    """
    if kernel % 2 == 0 or 2 * kernel - 1 >= side:
        raise ValueError(
            f"an odd kernel that two layers do not make as large as the image, got {kernel} of {side}"
        )
    middle = side // 2
    one, two = kernel**2, (2 * kernel - 1) ** 2
    description = (
        f"Two grids of {side} by {side} places; one place in the middle is marked. Through one layer of "
        f"convolution with a kernel of {kernel} by {kernel} it sees {one} places, through two layers {two}, "
        f"always around itself. Through one layer of attention it sees all {side * side}, near and far alike."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, room: Pixels, name: str, far: bool) -> None:
        scene.text(x + room / 2, y + 8, name, bold=True)
        cell, top = room / side, y + 24
        for i in range(side):
            for j in range(side):
                away = max(abs(i - middle), abs(j - middle))
                look: dict[str, Any] = {"strength": "faint"}
                if far or away <= kernel // 2:
                    look = {"role": KEY, "shade": 0.75}
                elif away <= kernel - 1:
                    look = {"role": KEY, "shade": 0.2}
                if away == 0:
                    look = {"role": QUERY, "strength": "full"}
                scene.box(x + j * cell, top + i * cell, cell, cell, **look)

    def layout(room: Pixels, size: Pixels) -> Scene:
        grid = min(190.0, (room - 24) / 2)
        gap = 24.0 if room == PHONE else 60.0
        scene, left = Scene(room, size=size), (room - 2 * grid - gap) / 2
        panel(scene, left, 0, grid, "convolution", False)
        panel(scene, left + grid + gap, 0, grid, "attention", True)
        y = grid + 46
        for k, (shade, words) in enumerate(((0.75, "one layer"), (0.2, "two layers"))):
            x = left + k * 130
            scene.box(x, y - 9, 18, 18, role=KEY, shade=shade)
            scene.text(x + 26, y, words, anchor="start")
        scene.height = y + 16
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def fill_in(image: Any, hidden: Sequence[bool], *, title: str = "Hidden patches, filled in") -> Drawing:
    """A masked autoencoder: the encoder reads the visible patches, a decoder fills in the others.

    Args:
        image: rows of ink from 0 to 1.
        hidden: for each patch, in reading order, whether it is hidden; as many as a square has.
        title: what it shows.

    Raises:
        ValueError: if the patches do not make a square, or all or none are hidden.
    """
    grey, parts = _grey(image), round(len(hidden) ** 0.5)
    seen = len(hidden) - sum(map(bool, hidden))
    if parts**2 != len(hidden) or not 0 < seen < len(hidden):
        raise ValueError(f"a square of patches, some of them hidden, got {len(hidden)} with {seen} visible")
    description = (
        f"Left: a digit in {len(hidden)} patches of which {len(hidden) - seen} are hidden. An encoder reads "
        f"the {seen} others, and the class token c. Middle: its {seen} outputs are back in their places, and "
        f"every hidden place has the same learned vector. A decoder reads all {len(hidden)}. Right: pixels "
        "are expected in all places, and compared with the image where it was hidden."
    )

    each = len(grey) / parts
    seen_ink = [
        [0.0 if hidden[int(i // each) * parts + int(j // each)] else ink for j, ink in enumerate(row)]
        for i, row in enumerate(grey)
    ]

    def grid(scene: Scene, x: Pixels, y: Pixels, side: Pixels, kind: str) -> None:
        cell = side / parts
        if kind == "pixels":
            scene.picture(x, y, side, grey)
        if kind == "image":
            scene.picture(x, y, side, seen_ink)
        for n, away in enumerate(hidden):
            left, top = x + (n % parts) * cell, y + (n // parts) * cell
            if kind == "image" and away:
                scene.box(left, top, cell, cell, role=WEIGHTS, strength="full")
            if kind == "vectors":
                look: dict[str, Any] = {"role": WEIGHTS} if away else {"role": KEY, "strength": "full"}
                scene.box(left + 3, top + 3, cell - 6, cell - 6, radius=3, **look)
            if kind == "pixels" and away:
                scene.box(left, top, cell, cell, role=WEIGHTS, shade=0.15)
        _cuts(scene, x, y, side, parts)

    stages = (("image", "hidden"), ("vectors", "back in place"), ("pixels", "compared"))
    between = (f"encoder: {seen} + c", f"decoder: {len(hidden)}")

    def wide() -> Scene:
        scene, side = Scene(700, size=14), 132.0
        step = (700 - side) / 2
        for k, (kind, words) in enumerate(stages):
            grid(scene, k * step, 26, side, kind)
            scene.text(k * step + side / 2, 10, words, bold=True)
        for k, words in enumerate(between):
            x = k * step + side
            scene.arrow((x + 8, 92), (x + step - side - 8, 92))
            scene.box(x + 22, 74, step - side - 50, 36, words, role=STREAM, strength="full", radius=6)
        scene.height = 26 + side + 6
        return scene

    def narrow() -> Scene:
        scene, side = Scene(PHONE, size=13.5), 120.0
        x = 0.0
        for k, (kind, words) in enumerate(stages):
            y = k * (side + 42)
            scene.text(x, y + 8, words, bold=True, anchor="start")
            grid(scene, x, y + 24, side, kind)
            if k < 2:
                scene.arrow((side + 10, y + 24 + side / 2), (side + 70, y + 24 + side / 2),
                            (side + 70, y + 24 + side + 48), (side + 10, y + 24 + side + 48))  # fmt: skip
                scene.box(
                    side + 40, y + side - 4, 130, 34, between[k], role=STREAM, strength="full", radius=6
                )
        scene.height = 3 * (side + 42) - 12
        return scene

    return Drawing(title, description, wide(), narrow())


def filled(
    images: Sequence[Any], hidden: Sequence[Sequence[bool]], inks: Sequence[Any], *,
    title: str = "What is filled in",
) -> Drawing:  # fmt: skip
    """Images with hidden patches, what a model fills in there, and the images: a column an image.

    Args:
        images: rows of ink from 0 to 1, for each.
        hidden: for each image, whether each of its patches is hidden, in reading order.
        inks: for each image, rows of ink with the hidden patches filled in.
        title: what it shows.

    Raises:
        ValueError: if there are not as many of each, or the patches do not make a square.
    """
    if not len(images) == len(hidden) == len(inks):
        raise ValueError(f"got {len(images)} images, {len(hidden)} times patches and {len(inks)} answers")
    parts = round(len(hidden[0]) ** 0.5)
    if any(len(away) != parts**2 for away in hidden):
        raise ValueError(f"a square of patches for each image, got {[len(away) for away in hidden]}")
    gone = sum(map(bool, hidden[0]))
    description = (
        f"{len(images)} digits, one a column. Above, {parts**2 - gone} of {parts**2} patches are seen and "
        f"{gone} are hidden. In the middle, the model's expectation fills the hidden patches: blurred "
        "strokes. Below stand the digits themselves."
    )
    rows = {
        "what is seen": (images, True),
        "filled in": (inks, False),
        "the digit": (images, False),
    }

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, phone = Scene(room, size=size), room == PHONE
        left, side, gap = (0.0, (PHONE - 24) / 3, 12.0) if phone else (190.0, 112.0, 30.0)
        y = 0.0
        for words, (pictures, covered) in rows.items():
            if phone:
                scene.text(0, y + 8, words, anchor="start", bold=True)
                y += 22
            else:
                scene.text(left - 20, y + side / 2, words, anchor="end", bold=True)
            for k, picture in enumerate(pictures):
                x, cell, grey = left + k * (side + gap), side / parts, _grey(picture, halved=True)
                each = len(grey) / parts
                if covered:
                    grey = [
                        [0.0 if hidden[k][int(i // each) * parts + int(j // each)] else ink
                         for j, ink in enumerate(line)] for i, line in enumerate(grey)
                    ]  # fmt: skip
                scene.picture(x, y, side, grey)
                for n, away in enumerate(hidden[k] if covered else ()):
                    if away:
                        place = (x + (n % parts) * cell, y + (n // parts) * cell)
                        scene.box(*place, cell, cell, role=WEIGHTS, shade=0.35)
                scene.box(x, y, side, side)
            y += side + (20 if phone else 14)
        scene.height = y - 8
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def agreement(
    images: Sequence[Any], words: Sequence[str], cosines: Sequence[Sequence[Pixels]], *,
    title: str = "Which image goes with which word?",
) -> Drawing:  # fmt: skip
    """A table of cosines: images down, spoken words across; on the diagonal stand those that belong together.

    Args:
        images: rows of ink from 0 to 1, for each.
        words: as many.
        cosines: a row for each image.
        title: what it shows.

    Raises:
        ValueError: if there are not as many words and cosines as images.
    """
    grey = [_grey(image, halved=True) for image in images]
    words = listed(words, "words", len(grey))
    rows = table(cosines, "cosines")
    if len(rows) != len(grey) or any(len(row) != len(grey) for row in rows):
        raise ValueError(f"a square of {len(grey)} cosines, got rows of {[len(row) for row in rows]}")
    description = (
        "A table with an image of a digit before each row and a spoken word above each column. "
        + "; ".join(
            f"the image of {words[n]} has with its word the cosine {number(row[n], 2)}, with others at most "
            f"{number(max(x for m, x in enumerate(row) if m != n), 2)}"
            for n, row in enumerate(rows)
        )
        + "."
    )

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        height = 44.0
        scene, left = Scene(room, size=size), (room - cell * len(grey) - 56) / 2 + 56
        for m, word in enumerate(words):
            scene.token(left + (m + 0.5) * cell, 0, word, cell - 6, 28, role=QUERY)
        for n, (picture, row) in enumerate(zip(grey, rows, strict=True)):
            y = 38 + n * height
            scene.picture(left - 50, y + 2, 38, picture)
            for m, value in enumerate(row):
                own: dict[str, Any] = {"strength": "full", "bold": True} if n == m else {"shade": 0.12}
                scene.box(left + m * cell, y, cell, height, number(value, 2), role=WEIGHTS, **own)
        scene.height = 38 + len(grey) * height + 6
        return scene

    return Drawing(title, description, layout(700, 84, 14), layout(PHONE, 272 / len(grey), 13.5))

"""Drawings of the page on notation: the same things in the text's columns and in the code's rows."""

from collections.abc import Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, widest
from tformer_book.kit.drawings.roles import QUERY, STREAM, VALUE, Role


def tokens_both_ways(
    words: Sequence[str],
    X: Any,
    *,
    token: int = 0,
    digits: int = 1,
    title: str = "A token is a column in the text and a row in code",
) -> Drawing:
    """The matrix X (D, N) with a word above each column, and its transpose with a word before each row.

    Args:
        words: N tokens.
        X: (D, N), a token in each column.
        token: which one is in full colour.
        digits: decimals of the numbers.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not go together, or there is no such token.
    """
    words = listed(words, "words")
    X = table(X, "X", columns=len(words))
    if not 0 <= token < len(words):
        raise ValueError(f"there is no token {token} among {len(words)}")
    D, N = len(X), len(words)
    rows = [list(column) for column in zip(*X, strict=True)]
    vector = ", ".join(number(value, digits) for value in rows[token])
    description = (
        f"Left, the text's matrix X with D = {D} rows and N = {N} columns; above its columns the tokens "
        f"{' '.join(words)}. Right, the code's x[b], its transpose, with N rows and D columns; the same "
        f"tokens stand before its rows. The vector of {words[token]}, {vector}, is in full colour in both: "
        "a column at the left, a row at the right."
    )

    def layout(*, stacked: bool) -> Scene:
        size = 14.0 if stacked else 15.0
        label = widest(words, size) + 2 * PAD
        cell = max(label + 5, 46.0)
        if stacked:
            cell = min(cell, (PHONE - 34) / N)
        row, side = 32.0, 26.0
        scene = Scene(PHONE, size=size)

        def text(x: Pixels, y: Pixels) -> tuple[Pixels, Pixels]:
            scene.text(x + side + N * cell / 2, y + 10, "In the text: X", bold=True)
            xs = [x + side + (n + 0.5) * cell for n in range(N)]
            scene.token_row(xs, y + 28, words, cell - 4, role=STREAM)
            scene.matrix(x + side, y + 86, X, cell, row, role=STREAM, column=token, digits=digits)
            scene.sides(x + side, y + 86, N * cell, D * row, "D", "N")
            return x + side + N * cell, y + 86 + D * row

        def code(x: Pixels, y: Pixels) -> tuple[Pixels, Pixels]:
            width = 46.0
            scene.text(x + (side + label + D * width) / 2, y + 10, "In code: x[b]", bold=True)
            top = y + 50
            left = x + side + label + 6
            for n, word in enumerate(words):
                scene.token(
                    x + side + label / 2, top + n * row + 2, word, label, row - 4, role=STREAM, size=size
                )
            scene.matrix(left, top, rows, width, row, role=STREAM, row=token, digits=digits)
            scene.text(left + D * width / 2, top - 12, "D", muted=True)
            scene.text(x + side - 6, top + N * row / 2, "N", anchor="end", muted=True)
            return left + D * width, top + N * row

        if stacked:
            _, y = text((PHONE - 26 - N * cell) / 2, 0)
            scene.arrow((PHONE / 2, y + 12), (PHONE / 2, y + 46), label="transpose")
            _, y = code((PHONE - side - label - 6 - D * 46) / 2, y + 58)
        else:
            x, y = text(0, 0)
            gap = 104.0
            scene.arrow((x + 16, 86 + D * row / 2), (x + gap - 16, 86 + D * row / 2))
            scene.text(x + gap / 2, 68 + D * row / 2, "transpose", muted=True)
            scene.width, other = code(x + gap, 0)
            scene.width, y = scene.width + 2, max(y, other)
        scene.height = y + 4
        return scene

    return Drawing(title, description, layout(stacked=False), layout(stacked=True))


def linear_both_ways(
    D: int, E: int, N: int, *, token: int = 0, title: str = "One linear map in the text and in code"
) -> Drawing:
    """Omega X in columns, x Omega^T in rows: rectangles with their shapes, one token in full colour.

    Args:
        D: width of what comes in.
        E: width of what goes out.
        N: tokens.
        token: which one is in full colour.
        title: what it shows.

    Raises:
        ValueError: if a size is not positive or above 8, or there is no such token.
    """
    for name, size in {"D": D, "E": E, "N": N}.items():
        if not 1 <= size <= 8:
            raise ValueError(f"{name} is drawn from 1 to 8, got {size}")
    if not 0 <= token < N:
        raise ValueError(f"there is no token {token} among {N}")
    description = (
        f"Two products of grids. In the text: the weight Omega, {E} by D = {D}, stands left of X, D by "
        f"N = {N}, and gives {E} by N; one token is a column of X, and its column of the result is in full "
        f"colour. In code: x[b], N by D, stands left of the transposed weight, D by {E}, and gives y[b], N "
        f"by {E}; the same token is a row. The stored weight has the same shape, out by in, in both."
    )

    def product(
        scene: Scene,
        x: Pixels,
        y: Pixels,
        cell: Pixels,
        heading: str,
        parts: Sequence[tuple[str, int, int, str, str, Role, bool]],
        *,
        rows: bool,
    ) -> Pixels:
        """Three grids in a line, · and = between them; returns the height that they take."""
        scene.text(x, y + 10, heading, anchor="start", bold=True)
        tall = max(part[1] for part in parts) * cell
        top = y + 56
        for (name, down, across, a, b, role, marked), sign in zip(parts, "·= ", strict=True):
            upper = top + (tall - down * cell) / 2
            left = x + 22
            row, column = (token, None) if rows else (None, token)
            if not marked:
                row = column = None
            scene.matrix(left, upper, [[""] * across] * down, cell, role=role, row=row, column=column)
            scene.sides(left, upper, across * cell, down * cell, a, b)
            scene.text(left + across * cell / 2, upper + down * cell + 16, name, bold=True)
            x = left + across * cell
            scene.text(x + 16, top + tall / 2, sign.strip(), size=18, bold=True)
            x += 34
        scene.width = max(scene.width, x - 32)
        return top + tall + 28

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        text = (
            ("Ω", E, D, "E", "D", QUERY, False),
            ("X", D, N, "D", "N", STREAM, True),
            ("ΩX", E, N, "E", "N", VALUE, True),
        )
        code = (
            ("x[b]", N, D, "N", "D", STREAM, True),
            ("weight.T", D, E, "D", "E", QUERY, False),
            ("y[b]", N, E, "N", "E", VALUE, True),
        )
        y = product(scene, 0, 0, cell, "In the text: a token is a column", text, rows=False)
        scene.height = product(scene, 0, y + 14, cell, "In code: a token is a row", code, rows=True)
        return scene

    phone = (PHONE - 3 * 22 - 2 * 34) / max(D + 2 * N, 2 * D + N, 2 * E + D, D + N + N, D + E + E)
    return Drawing(title, description, layout(420, 28, 15), layout(PHONE, min(phone, 24), 14))


def by_pencil(
    weight: Any,
    x: Any,
    *,
    token: int = 0,
    title: str = "One map of two tokens, to be filled in with a pencil",
) -> Drawing:
    """Omega X in columns and x Omega^T in rows with their numbers; the results are left to the reader.

    Args:
        weight: (E, D), as it is stored.
        x: (N, D), a token in each row.
        token: which one is in full colour.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not go together, or there is no such token.
    """
    weight = table(weight, "weight")
    x = table(x, "x", columns=len(weight[0]))
    E, D, N = len(weight), len(weight[0]), len(x)
    if not 0 <= token < N:
        raise ValueError(f"there is no token {token} among {N}")

    def across(matrix: Sequence[Sequence]) -> list[list]:
        return [list(column) for column in zip(*matrix, strict=True)]

    def said(matrix: Sequence[Sequence]) -> str:
        return "; ".join(" ".join(number(entry, 0) for entry in row) for row in matrix)

    asked = [["?"] * N for _ in range(E)]
    description = (
        f"Two products of small matrices, without their results. In the text: Omega, with the rows "
        f"{said(weight)}, times X, with the rows {said(across(x))}; the result has {E} rows and {N} columns "
        f"of question marks. In code: x[b], with the rows {said(x)}, times weight.T, with the rows "
        f"{said(across(weight))}; the result has {N} rows and {E} columns of question marks. Token "
        f"{token + 1} is in full colour: a column in the text, a row in code."
    )
    products = (
        (
            "In the text: a token is a column",
            (("Ω", weight, QUERY), ("X", across(x), STREAM), ("ΩX", asked, VALUE)),
        ),
        (
            "In code: a token is a row",
            (("x[b]", x, STREAM), ("weight.T", across(weight), QUERY), ("y[b]", across(asked), VALUE)),
        ),
    )

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene, y = Scene(room, size=size), 0.0
        for heading, parts in products:
            scene.text(0, y + 10, heading, anchor="start", bold=True)
            tall = max(len(matrix) for _, matrix, _ in parts) * cell
            x_, top = 2.0, y + 28
            for (name, matrix, role), sign in zip(parts, "·= ", strict=True):
                upper = top + (tall - len(matrix) * cell) / 2
                width = len(matrix[0]) * cell
                a_row, marked = parts is products[1][1], None if role is QUERY else token
                row, column = (marked, None) if a_row else (None, marked)
                scene.matrix(x_, upper, matrix, cell, role=role, digits=0, row=row, column=column)
                scene.text(x_ + width / 2, upper + len(matrix) * cell + 16, name, bold=True)
                x_ += width
                scene.text(x_ + 17, top + tall / 2, sign.strip(), size=18, bold=True)
                x_ += 34
            scene.width = max(scene.width, x_ - 32)
            y = top + tall + 44
        scene.height = y - 16
        return scene

    phone = (PHONE - 2 * 34 - 4) / max(D + 2 * N, D + 2 * E)
    return Drawing(title, description, layout(380, 38, 15), layout(PHONE, min(phone, 32), 14))


def sizes(
    words: Sequence[str], heads: int = 2, *, title: str = "The sizes of a batch, in one picture"
) -> Drawing:
    """B sequences behind each other, each N tokens high and D wide, cut into H heads of width Dh.

    Args:
        words: the N tokens of the sequence in front.
        heads: H.
        title: what it shows.

    Raises:
        ValueError: if there is no token, or H is not from 1 to 4.
    """
    words = listed(words, "words")
    if not 1 <= heads <= 4:
        raise ValueError(f"heads are drawn from 1 to 4, got {heads}")
    N, per_head = len(words), 3
    description = (
        f"A batch: B sheets, one behind the other. The sheet in front is one sequence, N = {N} rows high, a "
        f"row for each token, {' '.join(words)}, and D columns wide. Its columns are cut into H = {heads} "
        "groups side by side, the heads, each Dh = D/H wide."
    )
    colours = (QUERY, VALUE, STREAM, QUERY)

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        label = widest(words, size) + 2 * PAD + 6
        width, row, shift = heads * per_head * cell, 32.0, 13.0
        left, top = (room - width - label - 2 * shift - 50) / 2 + 28 + label, 30.0 + 2 * shift
        for sheet in (2, 1):
            x, y, bottom = left + sheet * shift, top - sheet * shift, top + (N * row - sheet * shift)
            near = shift if sheet == 1 else 0.5 * sheet * shift  # only what the sheet before it leaves free
            scene.line((x, y + near), (x, y), (x + width, y), (x + width, bottom), (x + width - near, bottom))
        for head in range(heads):
            scene.matrix(
                left + head * per_head * cell, top, [[""] * per_head] * N, cell, row, role=colours[head]
            )
        for n, word in enumerate(words):
            scene.token(left - label / 2 - 3, top + n * row + 2, word, label - 6, row - 4, role=STREAM)
        scene.text(left - label - 10, top + N * row / 2, "N", anchor="end", bold=True)
        scene.text(left + shift + width / 2, top - 2 * shift - 14, "D", bold=True)
        scene.arrow((left + width + 6, top - 2), (left + width + 2 * shift + 8, top - 2 * shift - 4))
        scene.text(left + width + 2 * shift + 14, top - 2 * shift - 10, "B", bold=True)
        bottom = top + N * row + 8
        for head in range(heads):
            x = left + head * per_head * cell
            scene.brace(x + 4, x + per_head * cell - 4, bottom, "D_{h}")
        scene.text(left + width / 2, bottom + 42, f"H = {heads} heads", muted=True)
        scene.height = bottom + 54
        return scene

    return Drawing(title, description, layout(420, 34, 15), layout(PHONE, min(34, 190 / (heads * 3)), 14))

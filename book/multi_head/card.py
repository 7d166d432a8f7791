"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import VALUE, WEIGHTS


@card("Multi-head self-attention", "Three maps of attention side by side.")
def draw(scene: Scene) -> None:
    """Paints it."""
    patterns = (
        lambda i, j: 0.95 if j == i - 1 or i == j == 0 else 0.05,
        lambda i, j: 0.95 if j == 0 else 0.05,
        lambda i, j: 0.4 if j <= i else 0.05,
    )
    for head, pattern in enumerate(patterns):
        for i in range(4):
            for j in range(4):
                strong = pattern(i, j) > 0.9
                scene.box(
                    9 + 50 * head + 10.5 * j, 14 + 10.5 * i, 10.5, 10.5,
                    role=WEIGHTS, strength="full" if strong else "pale", shade=2 * pattern(i, j),
                )  # fmt: skip
        scene.line((30 + 50 * head, 58), (30 + 50 * head, 68), (80, 78))
    scene.box(50, 76, 60, 14, role=VALUE, strength="full", radius=5)

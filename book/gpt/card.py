"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import WIDTH, card, cells
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import WEIGHTS


@card("GPT", "A causal mask: a triangle of cells, hatched above the diagonal.")
def draw(scene: Scene) -> None:
    """Paints it."""
    n, cell = 5, 17
    masked = [[s > i for s in range(n)] for i in range(n)]
    shades = [[0.0 if hatched else 0.8 for hatched in row] for row in masked]
    x = WIDTH / 2 - n * cell / 2
    cells(scene, x, 8, n, n, cell, WEIGHTS, row=n - 1, shades=shades, masked=masked)

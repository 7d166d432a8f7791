"""The drawing of where the bytes of a training step are. Its numbers come in as arguments."""

from collections.abc import Mapping

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, width_of
from tformer_book.kit.drawings.primitives import PHONE, Scene, Strength
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, Role

# Of the parts, in their order: what the optimiser keeps is blue, as in the calculator.
LOOKS: tuple[tuple[Role, Strength], ...] = (
    (KEY, "full"),
    (VALUE, "full"),
    (QUERY, "pale"),
    (QUERY, "full"),
    (STREAM, "full"),
)
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def written_bytes(size: float) -> str:
    """Bytes with three digits and a unit, a thousand to the next: 13.5 GB."""
    scale, unit = next(((s, u) for s, u in UNITS if size >= s), UNITS[-1])
    digits = size / scale
    return f"{digits:.0f} {unit}" if digits >= 100 or scale == 1 else f"{digits:.3g} {unit}"


def where_the_bytes_are(
    models: Mapping[str, Mapping[str, float]],
    *,
    memory: float | None = None,
    title: str = "Where the bytes of one step are",
) -> Drawing:
    """A bar for each model, as long as the others, cut into its parts to scale.

    Args:
        models: from a model's name to its parts, from what a part is called to its bytes; all models have the
            same parts, at most five, of which one may be 0 bytes.
        memory: the bytes that a GPU has; a brace under each bar that is longer.
        title: what it shows.

    Raises:
        ValueError: if there is no model, or there are no parts, too many, or not the same ones.
    """
    names = list(next(iter(models.values()), {}))
    if not 1 <= len(names) <= len(LOOKS) or any(list(parts) != names for parts in models.values()):
        raise ValueError(f"each model needs the same parts, at most {len(LOOKS)}, got {dict(models)}")
    said = []
    for model, parts in models.items():
        total = sum(parts.values())
        shares = ", ".join(
            f"{name} {written_bytes(size)} ({size / total:.0%})" for name, size in parts.items() if size
        )
        over = f" A GPU has {written_bytes(memory)}." if memory and memory < total else ""
        said.append(f"{model}, {written_bytes(total)}: {shares}.{over}")
    description = " ".join(["A bar for each model, its parts to scale.", *said])

    def bars(scene: Scene, y: Pixels, height: Pixels) -> Pixels:
        for model, parts in models.items():
            total = sum(parts.values())
            scene.text(0, y + 10, model, anchor="start", bold=True)
            scene.text(scene.width - 2, y + 10, written_bytes(total), anchor="end")
            x, top = 1.0, y + 24
            for (role, strength), size in zip(LOOKS, parts.values(), strict=False):
                wide = size / total * (scene.width - 2)
                if wide > 0:
                    share = f"{size / total:.0%}"
                    fits = width_of(share, 13.5) + 2 <= size / total * (
                        PHONE - 2
                    )  # in both layouts or in none
                    scene.box(x, top, wide, height, share if fits else "", role=role, strength=strength)
                x += wide
            y = top + height + 22
            if memory and memory < total:
                end = 1 + memory / total * (scene.width - 2)
                scene.brace(1, end, top + height + 5, f"a GPU has {written_bytes(memory)}")
                y += 24
        return y

    def legend(scene: Scene, y: Pixels, columns: int) -> Pixels:
        step = scene.width / columns
        for i, ((role, strength), name) in enumerate(zip(LOOKS, names, strict=False)):
            x, row = (i % columns) * step, i // columns
            scene.box(x + 1, y + 26 * row, 16, 16, role=role, strength=strength)
            scene.text(x + 24, y + 26 * row + 8, name, anchor="start")
        return y + 26 * ((len(names) + columns - 1) // columns)

    def wide() -> Scene:
        scene = Scene(640, size=15)
        scene.height = legend(scene, bars(scene, 2, 42), 3)
        return scene

    def narrow() -> Scene:
        scene = Scene(PHONE, size=13.5)
        scene.height = legend(scene, bars(scene, 2, 40), 2)
        return scene

    return Drawing(title, description, wide(), narrow())

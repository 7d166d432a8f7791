"""The figures on costs: what they draw is what they are given."""

from tformer_book.kit.plot_style import BookFigure
from tformer_book.scale.plots.costs import lost_by_scale, messages_over_work


def test_each_type_has_a_line_for_each_run():
    lost = {"float16": [[0.5, 0.0, 0.1], [0.4, 0.0, 0.2]], "bfloat16": [[0.0, 0.0, 0.0]]}
    figure = lost_by_scale([-12, 0, 24], lost)
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(figure._repr_svg_()) < 100_000
    drawn = [list(line.get_ydata()) for line in figure.axes[0].lines]
    assert drawn[:3] == [*lost["float16"], *lost["bfloat16"]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["float16", "bfloat16"]


def test_each_form_has_a_line_for_each_link():
    ratios = {("sharded", "inside"): [0.1, 0.2], ("tensor", "between"): [0.5, 3.0]}
    figure = messages_over_work([2, 8], ratios)
    assert isinstance(figure, BookFigure)
    *lines, one = figure.axes[0].lines
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in lines] == [
        ([2, 8], ratio) for ratio in ratios.values()
    ]
    assert list(one.get_ydata()) == [1, 1]  # above it messages are longer than the work
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["sharded, inside", "tensor, between"]

"""What the decoder of a gated translator may read."""

import pytest
import torch

from tformer_book.inside.data.number_pairs import with_end
from tformer_book.inside.models.number_translator import GatedTranslator, exact_share, trained_translator
from tformer_book.kit.data.number_words import NumberWords
from tformer_lib import TransformerConfig, record_attention
from tformer_lib.generation.greedy import greedy_search
from tformer_lib.models.translator import Translator

CONFIG = TransformerConfig(d_model=12, n_heads=2, n_blocks=1)
SOURCE = torch.tensor([[5, 6, 7, 2], [5, 6, 2, 0]])
TARGET = torch.tensor([[1, 4], [1, 5]])


def weights(model):
    with torch.no_grad(), record_attention(model) as seen:
        model(SOURCE, TARGET)
    return seen["decoder.blocks.0.cross_attention"]


def gated(reads):
    torch.manual_seed(0)
    return GatedTranslator(CONFIG, 9, reads=reads)


def test_one_that_reads_all_is_the_library_s():
    torch.manual_seed(0)
    plain = Translator(CONFIG, 9).eval()
    torch.testing.assert_close(gated("all").eval()(SOURCE, TARGET), plain(SOURCE, TARGET))


def test_one_that_reads_the_end_reads_nothing_else():
    seen = weights(gated("end").eval())
    wanted = (SOURCE == 2).float()[:, None, None].expand_as(seen)
    torch.testing.assert_close(seen, wanted)


def test_one_that_reads_words_reads_all_but_the_end():
    model = gated("all").eval()
    model.reads = "words"
    seen = weights(model) > 0
    assert torch.equal(seen, (SOURCE > 2)[:, None, None].expand_as(seen))


def test_either_reads_one_or_the_other_in_training_and_both_afterwards():
    model = gated("either")
    cases = set()
    for _ in range(20):
        for row, source in zip(weights(model)[:, 0, 0], SOURCE, strict=True):
            end = row[source == 2].item()
            assert row[source == 0].sum() == 0
            assert end in (0.0, 1.0)
            cases.add(end)
    assert cases == {0.0, 1.0}
    assert weights(model.eval())[SOURCE[:, None, None].expand(2, 2, 2, 4) != 0].min() > 0


def test_an_unknown_way_to_read_is_refused():
    with pytest.raises(ValueError, match="reads must be one of"):
        gated("some")


def test_a_short_training_learns_small_numbers_and_is_counted_as_greedy_decoding_is():
    data = NumberWords(upper=30, n_held_out=5)
    model = trained_translator(data, 0, blocks=1, steps=60)
    share = exact_share(model, data, data.train)
    assert 0.2 < share <= 1

    source, target = data.encode(data.train)
    written = greedy_search(model, with_end(source), max_len=target.shape[1])
    exact = [
        data.german.decode(found.tokens) == data.german.decode(true[1:])
        for found, true in zip(written, target, strict=True)
    ]
    assert sum(exact) / len(exact) == pytest.approx(share)

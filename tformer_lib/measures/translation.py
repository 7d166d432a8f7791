"""Scores of translations: the share that is right, BLEU and chrF; and how much of a difference is chance."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_lib.numbers import whole


def translation_scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, float | str]:
    """{"exact", "bleu", "chrf", "bleu signature", "chrf signature"} of a whole test set.

    exact is the share of translations equal to their references. BLEU (Papineni et al. 2002) and chrF
    (Popović 2015) are sacrebleu's, from 0 to 100, on plain text; the signatures say how they were computed
    (Post 2018).

    Raises:
        ImportError: if sacrebleu is not installed.
        ValueError: if there are none, or not one reference for each translation.
    """
    check_references(translations, references)
    BLEU, CHRF = sacrebleu_metrics()
    equal = [one == other for one, other in zip(translations, references, strict=True)]
    scores: dict[str, float | str] = {"exact": sum(equal) / len(equal)}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        scores[name] = float(metric.corpus_score(list(translations), [list(references)]).score)
        scores[f"{name} signature"] = str(metric.get_signature())
    return scores


def paired_bootstrap(
    one: Sequence[str], other: Sequence[str], references: Sequence[str], *, draws: int = 1000, seed: int = 0
) -> Float[Tensor, " draws"]:
    """BLEU(one) - BLEU(other) on `draws` test sets, drawn with replacement from the given one.

    Both systems are scored on the same sentences in each draw (Koehn 2004), so that what makes a test set
    easy for both cancels. The mean is near the difference on the whole test; the standard deviation says how
    much of it hangs on which sentences happen to be in the test. It knows nothing of other training seeds.
    BLEU is not smoothed: a draw in which no four words are right has 0.

    Args:
        one: translations by one system.
        other: of the same sentences, by another.
        references: one for each.
        draws: how many test sets are drawn.
        seed: of the draws.

    Raises:
        ImportError: if sacrebleu is not installed.
        ValueError: if there are none, or not one reference for each translation, or `draws` is below 1.
        TypeError: if `draws` is not whole.
    """
    draws = whole("draws", draws, 1)
    counts = []
    for translations in (one, other):
        check_references(translations, references)
        # The effective order keeps sacrebleu silent about short sentences; the counts are the same.
        metric = sacrebleu_metrics()[0](effective_order=True)
        rows = [
            metric.sentence_score(text, [true]) for text, true in zip(translations, references, strict=True)
        ]
        found = [[row.sys_len, row.ref_len, *row.counts, *row.totals] for row in rows]
        counts.append(torch.tensor(found, dtype=torch.float64))
    chosen = torch.randint(
        len(references), (draws, len(references)), generator=torch.Generator().manual_seed(seed)
    )

    def bleu(table: Tensor) -> Tensor:
        written, true, *grams = table[chosen].sum(dim=1).unbind(dim=1)
        brevity = (1 - true / written).clamp(max=0)
        shares = torch.stack([grams[n] / grams[n + 4] for n in range(4)]).nan_to_num(0)  # no n-gram at all
        return 100 * (brevity + shares.log().mean(dim=0)).exp()

    return bleu(counts[0]) - bleu(counts[1])


def check_references(translations: Sequence[str], references: Sequence[str]) -> None:
    """Raise unless there is a reference for each translation."""
    if len(translations) != len(references) or not references:
        raise ValueError(
            f"there must be a reference for each translation, got {len(references)} for {len(translations)}"
        )


def sacrebleu_metrics() -> tuple[type, type]:
    """sacrebleu's BLEU and chrF."""
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise ImportError("scores of translations need sacrebleu: pip install sacrebleu") from error
    return BLEU, CHRF

"""Scores of translations: the share that is right, BLEU and chrF."""

from collections.abc import Sequence


def translation_scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, float | str]:
    """{"exact", "bleu", "chrf", "bleu signature", "chrf signature"} of a whole test set.

    exact is the share of translations equal to their references. BLEU (Papineni et al. 2002) and chrF
    (Popović 2015) are sacrebleu's, from 0 to 100, on plain text; the signatures say how they were computed
    (Post 2018).

    Raises:
        ImportError: if sacrebleu is not installed.
        ValueError: if there are none, or not one reference for each translation.
    """
    if len(translations) != len(references) or not references:
        raise ValueError(
            f"there must be a reference for each translation, got {len(references)} for {len(translations)}"
        )
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise ImportError("scores of translations need sacrebleu: pip install 'tformer-lib[book]'") from error
    equal = [one == other for one, other in zip(translations, references, strict=True)]
    scores: dict[str, float | str] = {"exact": sum(equal) / len(equal)}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        scores[name] = float(metric.corpus_score(list(translations), [list(references)]).score)
        scores[f"{name} signature"] = str(metric.get_signature())
    return scores

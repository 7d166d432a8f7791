"""Beam search: the likeliest few beginnings, carried on together."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.modes import evaluation, plain
from tformer_lib.generation.greedy import greedy_search
from tformer_lib.generation.hypotheses import Hypothesis, check_search, length_score
from tformer_lib.generation.sampling import log_probabilities
from tformer_lib.generation.target_reading import check_sources, first_tokens, target_reader
from tformer_lib.models.recurrent import EncoderDecoder
from tformer_lib.models.translator import Translator


@torch.no_grad()
def beam_search(
    model: Translator | EncoderDecoder,
    source: Int[Tensor, "B S"],
    max_len: int,
    *,
    num_beams: int = 4,
    length_penalty: float = 1.0,
    n_best: int = 1,
    with_greedy: bool = True,
) -> list[list[Hypothesis]]:
    """The targets with the greatest log p(y | x) / |y|^length_penalty that a beam finds, best first.

    At each step every beginning that is still written is continued by every token, and of all continuations
    the `num_beams` likeliest are kept; those among them that end, by the end token or at `max_len`, are set
    aside, and the next likeliest take their places. A source is done when it has `n_best` ended targets and
    no beginning can overtake the last of them, however it goes on: its log p can only fall, and at best is
    divided by the most favourable length left. All sources are searched at once; one that is done leaves the
    batch.

    One beam is greedy search, which ends with the first target. More beams keep greedy's beginning only as
    long as it is among the likeliest, and so may end with something worse; `with_greedy` puts greedy's own
    target among the found ones.

    Args:
        model: reads in evaluation mode; afterwards it is back in the mode it was in.
        source: tokens (B, S).
        max_len: the greatest number of tokens of a target, with its end token.
        num_beams: how many beginnings are kept.
        length_penalty: the exponent; 0 ranks by probability, which favours short targets, and the greater it
            is, the longer the targets that win.
        n_best: how many targets are returned for each source, at most.
        with_greedy: whether greedy search's target is a candidate in any case.

    Returns:
        For each source a list of one to `n_best` hypotheses.

    Raises:
        ValueError: if a number is below 1, `n_best` is greater than `num_beams`, there is no source, a token
            is not in the vocabulary, `length_penalty` is not finite, or the model's logits are NaN or
            infinite.
        TypeError: if a count is no whole number.
    """
    length_penalty, (max_len, num_beams, n_best) = check_search(
        max_len, length_penalty, num_beams=num_beams, n_best=n_best
    )
    check_sources(source)
    model = plain(model)  # reading is done by its parts
    if n_best > num_beams:
        raise ValueError(
            f"n_best must not be greater than num_beams, got n_best={n_best} and num_beams={num_beams}"
        )
    if num_beams == 1:
        return [[only] for only in greedy_search(model, source, max_len, length_penalty=length_penalty)]
    found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    with evaluation(model):
        reader, last = target_reader(model, source), first_tokens(model, source)
        copies = torch.arange(len(source), device=source.device).repeat_interleave(num_beams)
        reader.select(copies)
        last = last[copies]
        begun = source.new_empty(len(source), num_beams, 0)
        log_p = torch.full((len(source), num_beams), -math.inf, device=source.device)
        log_p[:, 0] = 0.0  # all beams are the same at first; only one may continue
        writing = list(range(len(source)))
        for length in range(1, max_len + 1):
            log_p, parents, tokens = _best(reader.read(last), log_p, 2 * num_beams)
            for row, number in enumerate(writing):
                candidates = (log_p[row].tolist(), parents[row].tolist(), tokens[row].tolist())
                for total, parent, token in list(zip(*candidates, strict=True))[:num_beams]:
                    if (token == model.eos_id or length == max_len) and total > -math.inf:
                        score = length_score(total, length, length_penalty)
                        target = (*begun[row, parent].tolist(), token)
                        found[number].append(Hypothesis(target, total, score))
                found[number] = _ranked(found[number])[:n_best]
            order = (tokens == model.eos_id).int().argsort(dim=1, stable=True)
            kept = order[:, :num_beams]  # those that go on, likeliest first
            log_p, parents, tokens = (x.gather(1, kept) for x in (log_p, parents, tokens))
            begun = begun.gather(1, parents[..., None].expand(-1, -1, length - 1))
            begun = torch.cat((begun, tokens[..., None]), dim=2)
            longest = max_len if length_penalty > 0 else length + 1
            hopes = [length_score(best, longest, length_penalty) for best in log_p[:, 0].tolist()]
            going = [
                row
                for row, (number, hope) in enumerate(zip(writing, hopes, strict=True))
                if len(found[number]) < n_best or hope > found[number][-1].score
            ]
            if length == max_len or not going:
                break
            rows = torch.tensor(going, device=source.device)
            reader.select((rows[:, None] * num_beams + parents[rows]).flatten())
            log_p, begun, last = log_p[rows], begun[rows], tokens[rows].flatten()
            writing = [writing[row] for row in going]
    if with_greedy:
        safe = greedy_search(model, source, max_len, length_penalty=length_penalty)
        for row, hypothesis in enumerate(safe):
            if hypothesis.tokens not in {other.tokens for other in found[row]}:
                found[row] = _ranked([*found[row], hypothesis])[:n_best]
    return found


def _best(
    logits: Float[Tensor, "R vocab"], log_p: Float[Tensor, "B beams"], count: int
) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"], Int[Tensor, "B K"]]:
    """The `count` likeliest continuations of each source: log p, the beam they continue, the new token."""
    vocab = logits.shape[-1]
    total = log_p[..., None] + log_probabilities(logits).view(*log_p.shape, vocab)
    best, flat = total.flatten(1).topk(min(count, total[0].numel()), dim=1)
    return best, flat // vocab, flat % vocab


def _ranked(found: list[Hypothesis]) -> list[Hypothesis]:
    """By score, best first."""
    return sorted(found, key=lambda hypothesis: -hypothesis.score)

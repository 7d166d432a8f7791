"""Losses and scores of models in half precision: as of the same numbers in float32, at every batch size."""

import importlib
import inspect
import pkgutil

import pytest
import torch
from torch import Tensor, nn

import tformer_lib
from tformer_book.image_gpt.probing import choose_penalty, linear_probe
from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.tokens import IGNORED, cross_entropy
from tformer_lib.efficient.mixture import balance_loss
from tformer_lib.generation import beam_search, greedy_search
from tformer_lib.generation.filling import fill_in
from tformer_lib.generation.sampling import log_probabilities, next_token_probabilities
from tformer_lib.measures.language import bits_per_character, bits_per_pixel
from tformer_lib.measures.masked import masked_scores, place_scores
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.models.classifiers import SequenceClassifier, classifier_loss
from tformer_lib.models.contrastive import contrastive_loss
from tformer_lib.models.dit import flow_loss
from tformer_lib.models.language import language_loss
from tformer_lib.models.masked_autoencoder import MaskedAutoencoder, reconstruction_loss
from tformer_lib.models.recurrent import EncoderDecoder, FinalState, encoder_decoder_loss
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import fit
from tformer_lib.training.plan import clip_gradients

SMALL = TransformerConfig(d_model=16, n_heads=2, n_blocks=1)
VOCAB, N = 37, 12
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz012345"]


def tokens(batch, n=N, seed=0):
    return torch.randint(3, VOCAB, (batch, n), generator=torch.Generator().manual_seed(seed))


def widened(x):
    if isinstance(x, Tensor) and x.is_floating_point():
        return x.float()
    return tuple(map(widened, x)) if isinstance(x, tuple) else x


class Case:
    """A model in some type; what it says is what it says in this type, handed on in another if `wide`."""

    def __init__(self, dtype, wide):
        self.dtype, self.wide = dtype, wide
        torch.manual_seed(0)

    def model(self, model):
        model = model.to(self.dtype).eval()
        with torch.no_grad():
            for p in model.parameters():  # clear answers, which take all digits
                p.mul_(3.0)
        if self.wide:
            model.register_forward_hook(lambda _module, _inputs, output: widened(output))
        return model

    def numbers(self, *shape, seed=0):
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(self.dtype)
        return x.float() if self.wide else x

    def gpt(self):
        return self.model(GPT(SMALL, VOCAB, positions=LearnedPositions(2 * N, 16)))

    def bert(self, head=PretrainingBERT):
        bert = BERT(bert_config(d_model=16, n_heads=2, n_blocks=1, dropout=0.0), VOCAB, max_len=N)
        return self.model(head(bert))

    def translator(self):
        model = self.model(Translator(SMALL, VOCAB))
        if self.wide:
            decode = model.decode
            model.decode = lambda *args: decode(*args).float()
        return model


def pretraining_batch(batch):
    rows = tokens(batch)
    targets = rows.where(rows % 3 == 0, IGNORED)
    targets[:, 0] = rows[:, 0]
    return rows, torch.zeros_like(rows), None, targets, rows[:, 0] % 2


def vit(c, **options):
    model = ViT(SMALL, image_size=8, patch_size=4, **options)
    return c.model(model)


def reconstructed(c, batch):
    model = c.model(MaskedAutoencoder(ViT(SMALL, image_size=8, patch_size=2), SMALL))
    hidden = model.draw(batch, torch.Generator().manual_seed(0))
    return reconstruction_loss(model, torch.randn(batch, 1, 8, 8).to(c.dtype), hidden)


def flow(c, batch):
    velocity = c.numbers(batch, 1, 8, 8, seed=3)
    images = torch.randn(batch, 1, 8, 8, generator=torch.Generator().manual_seed(1)).to(c.dtype)
    drawn = torch.Generator().manual_seed(2)
    return flow_loss(lambda x, t: velocity, images, drawn)


def recurrent(c):
    model = EncoderDecoder(VOCAB, VOCAB, 8, 8, context=FinalState())
    return c.model(model)


def classified(c, batch):
    model = c.bert(lambda bert: SequenceClassifier(bert, 5))
    return classifier_loss(model, (tokens(batch), None, tokens(batch)[:, 0] % 5))


def probabilities(c, batch):
    return c.numbers(batch, 4).float().softmax(-1).to(c.dtype)


def probed(c, batch):
    x, y = c.numbers(40, 6), torch.arange(40) % 2
    return torch.tensor([linear_probe(x, y, x, y), choose_penalty(x, y)])


def filled(c, batch):
    model = c.bert()
    found = fill_in(model, WordPieceTokenizer(WORDS), "a [MASK] b", k=4)
    return torch.tensor([p for hole in found for _, p in hole], dtype=torch.float32)


CASES = {
    "cross_entropy": lambda c, b: cross_entropy(c.numbers(b, 50) * 8, torch.arange(b) % 50),
    "language_loss": lambda c, b: language_loss(c.gpt(), tokens(b)),
    "pretraining_loss": lambda c, b: pretraining_loss(c.bert(), pretraining_batch(b)),
    "classifier_loss": classified,
    "image_loss": lambda c, b: image_loss(
        vit(c, classes=3), (torch.randn(b, 1, 8, 8).to(c.dtype), torch.arange(b) % 3)
    ),
    "translator_loss": lambda c, b: translator_loss(
        c.translator(), (tokens(b), tokens(b)), label_smoothing=0.1
    ),
    "encoder_decoder_loss": lambda c, b: encoder_decoder_loss(recurrent(c), (tokens(b), tokens(b))),
    "contrastive_loss": lambda c, b: contrastive_loss(c.numbers(b, 9), c.numbers(b, 9, seed=1)),
    "reconstruction_loss": reconstructed,
    "flow_loss": flow,
    "balance_loss": lambda c, b: balance_loss(
        probabilities(c, b).float() if c.wide else probabilities(c, b), torch.arange(b)[:, None] % 3
    ),
    "bits_per_character": lambda c, b: bits_per_character(c.gpt(), tokens(1, 200)[0], N, batch=b),
    "bits_per_pixel": lambda c, b: bits_per_pixel(c.gpt(), tokens(100), batch=b),
    "masked_scores": lambda c, b: torch.tensor(masked_scores(c.bert(), [pretraining_batch(b)])),
    "place_scores": lambda c, b: place_scores(c.bert(), [pretraining_batch(b)])[0],
    "linear_probe": probed,
    "choose_penalty": probed,
    "beam_search": lambda c, b: [one.log_p for (one,) in beam_search(c.translator(), tokens(b), 6)],
    "greedy_search": lambda c, b: [one.log_p for one in greedy_search(c.translator(), tokens(b), 6)],
    "log_probabilities": lambda c, b: log_probabilities(c.numbers(b, VOCAB) * 8),
    "next_token_probabilities": lambda c, b: next_token_probabilities(c.numbers(b, VOCAB), temperature=0.7),
    "fill_in": filled,
}
NOT_OF_FLOATS = {
    "accuracy": "counts right answers",
    "entity_f1": "counts entities",
    "unigram_scores": "reads counts, in float64",
    "means": "is handed scores, and adds them in float64",
    "next_sentence_accuracy": "counts right answers",
    "time_per_token": "measures time",
    "check_loss": "looks at the shape of a loss",
}


def public_functions():
    for module in pkgutil.walk_packages(tformer_lib.__path__, "tformer_lib."):
        if module.name.split(".")[1] in ("book", "train", "pretrained"):
            continue
        for name, found in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(found) and found.__module__ == module.name and not name.startswith("_"):
                yield module.name, name, found


def test_every_public_loss_and_score_is_looked_at():
    """Found in the package: what is called a loss, and every measure that returns numbers."""
    found = set()
    for module, name, function in public_functions():
        returned = str(inspect.signature(function).return_annotation)
        measure = module.startswith("tformer_lib.measures") and ("float" in returned or "Float" in returned)
        if name.endswith(("_loss", "cross_entropy")) or name.startswith("bits_per") or measure:
            found.add(name)
    other = {"translation_scores", "paired_bootstrap"}  # of texts and tags
    unknown = {name for name in found if name not in CASES.keys() | NOT_OF_FLOATS.keys() | other}
    assert not unknown, f"add these to CASES: {unknown}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("batch", [1, 8, 64])
@pytest.mark.parametrize("name", CASES)
def test_half_precision_says_what_float32_says_of_the_same_numbers(name, batch, dtype, unchecked):
    found, wanted = (CASES[name](Case(dtype, wide), batch) for wide in (False, True))
    if isinstance(found, Tensor):
        assert found.dtype in (torch.float32, torch.float64)
    found, wanted = (torch.as_tensor(x).double() for x in (found, wanted))
    torch.testing.assert_close(found, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["bits_per_character", "bits_per_pixel"])
def test_the_number_of_windows_at_a_time_changes_no_score(name, unchecked):
    """5.697, 5.707, 5.738 and 5.729 they once were, at 1, 8, 64 and 256: means in bfloat16."""
    scores = [CASES[name](Case(torch.bfloat16, False), batch) for batch in (1, 3, 16, 100)]
    assert max(scores) - min(scores) < 0.002 * max(scores)  # products of half precision may differ


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_norms_of_gradients(dtype):
    parameters = [nn.Parameter(torch.zeros(300, 7, dtype=dtype)) for _ in range(3)]
    parameters.append(nn.Parameter(torch.zeros(2, dtype=dtype)))  # without a gradient
    for i, p in enumerate(parameters[:3]):
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(i)).to(dtype)
    wanted = torch.cat([p.grad.double().flatten() for p in parameters[:3]]).norm()
    norm = clip_gradients(parameters, 1.0)
    torch.testing.assert_close(norm.double(), wanted, rtol=1e-6, atol=0)
    clipped = torch.cat([p.grad.double().flatten() for p in parameters[:3]]).norm()
    assert clipped.item() == pytest.approx(1.0, rel=max(1e-6, 4 * torch.finfo(dtype).eps))


def test_the_history_of_a_training_in_half_precision_has_all_digits():
    torch.manual_seed(0)
    model = GPT(SMALL, VOCAB, positions=LearnedPositions(N, 16)).to(torch.bfloat16)
    history = fit(model, language_loss, [tokens(4)] * 3, lr=1e-3, warmup=0)
    for value in (*history.loss, *history.grad_norm):
        assert torch.tensor(value).bfloat16().item() != value

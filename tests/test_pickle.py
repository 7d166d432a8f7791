"""Everything that computes can be pickled, as a copy to another process does, and comes back whole."""

import copy
import importlib
import inspect
import pickle
import pkgutil
from typing import get_args

import pytest
import torch
from torch import nn

import tformer_lib
from tformer_book.scale.mup import WidthAttend
from tformer_lib.analysis.lens import AffineLens
from tformer_lib.core.attention import Attend, Backend, FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary, Rotary2D, SinusoidalPositions
from tformer_lib.core.score_bias import ALiBi, RelativeBias
from tformer_lib.core.transformer import MLP, Activation, TransformerConfig
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.latent import MultiHeadLatentAttention
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.low_rank import LowRankAttend
from tformer_lib.efficient.mixture import MixtureOfExperts
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier
from tformer_lib.models.dit import DiT
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import GRULanguageModel, MLPLanguageModel
from tformer_lib.models.masked_autoencoder import MaskedAutoencoder
from tformer_lib.models.recurrent import AdditiveAttention, Context, EncoderDecoder, FinalState
from tformer_lib.models.translator import Translator
from tformer_lib.models.vit import ViT
from tformer_lib.pretrained.marian import Marian

CONFIG = TransformerConfig(d_model=16, n_heads=4, n_blocks=1)
PHIS = [phi for phi in get_args(Activation) if phi != "swiglu"]


def pretraining(phi):
    return PretrainingBERT(
        BERT(bert_config(d_model=16, n_heads=4, n_blocks=1, activation=phi), 11, max_len=8)
    )


def bert():
    return BERT(bert_config(d_model=16, n_heads=4, n_blocks=1), 11, max_len=8)


def vit(**choices):
    return ViT(CONFIG, image_size=8, patch_size=4, classes=3, **choices)


EXAMPLES = {
    **{f"MLP, {phi}": lambda phi=phi: MLP(16, activation=phi) for phi in get_args(Activation)},
    **{f"PretrainingBERT, {phi}": lambda phi=phi: pretraining(phi) for phi in PHIS},
    "AffineLens": lambda: AffineLens(2.0, 16),
    "Attend": lambda: Attend(0.1, ALiBi(4)),
    "FusedAttend": lambda: FusedAttend(0.0, RelativeBias(4)),
    "GPT": lambda: GPT(CONFIG, 11, positions=LearnedPositions(8, 16)),
    "GPT, rotary": lambda: GPT(CONFIG, 11, rotary=Rotary(4), tied=False),
    "SinusoidalPositions": lambda: SinusoidalPositions(16),
    "DeltaAttend": lambda: DeltaAttend(4, gated=True),
    "MultiHeadLatentAttention": lambda: MultiHeadLatentAttention(16, 4, d_latent=8, d_rotary=2),
    "LinearAttend": LinearAttend,
    "LowRankAttend": lambda: LowRankAttend(8, 2),
    "MixtureOfExperts": lambda: MixtureOfExperts(16, n_experts=4, k=2, n_shared=1, activation="gelu_tanh"),
    "SlidingWindow": lambda: SlidingWindow(3),
    "BlockSparse": lambda: BlockSparse(4),
    "TiledAttend": lambda: TiledAttend(4),
    "SequenceClassifier": lambda: SequenceClassifier(bert(), 3),
    "TokenClassifier": lambda: TokenClassifier(bert(), 3),
    "DiT": lambda: DiT(CONFIG, image_size=8, patch_size=4),
    "MLPLanguageModel": lambda: MLPLanguageModel(11, 3, 4, 8),
    "GRULanguageModel": lambda: GRULanguageModel(11, 4, 8),
    "MaskedAutoencoder": lambda: MaskedAutoencoder(vit(), CONFIG),
    "EncoderDecoder": lambda: EncoderDecoder(9, 9, 4, 8, context=FinalState()),
    "EncoderDecoder, attention": lambda: EncoderDecoder(9, 9, 4, 8, context=AdditiveAttention(8, 16, 8)),
    "Translator": lambda: Translator(CONFIG, 11),
    "ViT": lambda: vit(rotary=Rotary2D(4, (2, 2))),
    "Marian": lambda: Marian(CONFIG, 11, pad_id=10),
    "WidthAttend": lambda: WidthAttend(4),
}
ABSTRACT = {Backend, Context}  # what others are made after


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("again", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_copy_is_the_same_module(name, again):
    module = EXAMPLES[name]()
    made = again(module)
    assert [type(m) for m in made.modules()] == [type(m) for m in module.modules()]
    theirs = made.state_dict()
    assert theirs.keys() == module.state_dict().keys()
    for key, value in module.state_dict().items():
        assert torch.equal(theirs[key], value)
        assert theirs[key].data_ptr() != value.data_ptr() or not value.numel()


def test_every_module_of_the_library_is_among_them():
    found = set()
    for module in pkgutil.walk_packages(tformer_lib.__path__, "tformer_lib."):
        if not module.name.startswith("tformer_book") and not module.name.endswith("__main__"):
            for cls in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(cls) and issubclass(cls, nn.Module) and cls.__module__ == module.name:
                    found.add(cls)
    tried = {type(part) for make in EXAMPLES.values() for part in make().modules()}
    missing = {cls for cls in found - tried - ABSTRACT if not cls.__name__.startswith("_")}
    assert missing == set()
    assert len(found) > 40


def test_a_head_takes_no_gated_activation():
    with pytest.raises(ValueError, match=r"takes one of the activations .*'gelu'.*, got 'swiglu'"):
        pretraining("swiglu")

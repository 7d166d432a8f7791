"""The real SmolLM2, where its package is installed."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_book.kit.data.text import shakespeare, wikipedia
from tformer_book.modern_decoder.few_shot import few_shot_accuracy, few_shot_tasks
from tformer_lib.generation import generate
from tformer_lib.pretrained import load_smollm2
from tformer_lib.pretrained.smollm2 import smollm2_path
from tformer_lib.tokenizers.pretokenise import visible

pytest.importorskip("gguf", reason="GGUF files are read by the package gguf")
try:
    PATH = smollm2_path()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

PROMPTS = ["The capital of France is", "def add(a, b):\n", "In 1984, 23 + 45 ="]
SPECIALS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
TEXTS = [
    "",
    "Hello world",
    "In 1984, 23+45=68; 3.14 and x²½ Ⅷ ٣",
    "a  1 b\n2 \n 3\t\t4   ",
    "  two  spaces\n\n\ttabs   \n end  ",
    "naïve café, Ångström, 東京都, Здравствуй мир, שלום 🙂",
    "def f(x):\n    return x**2  # §\r\n",
    "<|im_start|>user\nHow are 12 you?<|im_end|>\n<|im_start|>assistant\n",
    "We're here; I'd say they'll've gone. IT'S",
    "a" * 300 + " " * 77 + "9" * 40,
]


@pytest.fixture(scope="module")
def smollm2():
    return load_smollm2()


def test_its_size(smollm2):
    model, tokenizer = smollm2
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert tokenizer.vocab_size == model.embed.num_embeddings == 49_152
    assert tokenizer.special_tokens["<|endoftext|>"] == 0


def test_its_tokens_are_those_of_the_reference(smollm2, tmp_path):
    ours = smollm2[1]
    vocab = {visible(token): i for token, i in ours.vocab.items()} | ours.special_tokens
    theirs = Tokenizer(
        models.BPE(vocab=vocab, merges=[(visible(left), visible(right)) for left, right in ours.merges])
    )
    theirs.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    theirs.decoder = decoders.ByteLevel()
    theirs.add_special_tokens(list(ours.special_tokens))
    for text in [*TEXTS, shakespeare("validation")[:50_000], "\n".join(wikipedia("validation"))[:50_000]]:
        ids = ours.encode(text, allow_special=SPECIALS)
        assert ids == theirs.encode(text).ids
        assert ours.decode(ids) == text
    ours.save(tmp_path / "smollm2.json")
    again = type(ours).load(tmp_path / "smollm2.json")
    assert again == ours
    assert again.encode(TEXTS[2]) == ours.encode(TEXTS[2])


def test_logits_and_greedy_generation_are_those_of_the_reference(smollm2):
    pytest.importorskip("accelerate", reason="transformers needs accelerate in order to read a GGUF file")
    model, tokenizer = smollm2
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        PATH.parent, gguf_file=PATH.name, dtype=torch.float32
    ).eval()
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer.encode(prompt)])
        with torch.no_grad():
            assert_close(model(ids), theirs(ids).logits, atol=2e-3, rtol=0)
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=15, do_sample=False, pad_token_id=0
        )
        assert generate(model, ids[0].tolist(), 15, temperature=0, stop=[0, 2]) == expected[0].tolist()


def test_it_knows_some_capitals(smollm2):
    right, of = few_shot_accuracy(*smollm2, few_shot_tasks()["capitals"], 4, queries=range(8))
    assert of == 8
    assert right >= 4

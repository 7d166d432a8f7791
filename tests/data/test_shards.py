"""Token shards: what is written is read back, orders are permutations, runs go on exactly."""

import json
import pickle
import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib.data.shard_writing import END, END_CHARACTER, draw_held_out, make_tokenizer, write_shards
from tformer_lib.data.shards import ShardBatches, Shards, checksum_of_index
from tformer_lib.data.text_folder import TextFolder
from tformer_lib.data.windows import consecutive_windows
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer

TEXTS = [(f"{i}.txt", "".join(chr(97 + (7 * i + j * j) % 26) for j in range(20 + 9 * i))) for i in range(12)]
LETTERS = CharTokenizer("".join(map(chr, range(97, 123))) + END_CHARACTER)


def written(folder, *, texts=TEXTS, tokenizer=LETTERS, end=26, **options):
    return write_shards(texts, folder, tokenizer, end, **options)


@pytest.fixture
def shards(tmp_path):
    return written(tmp_path / "shards", shard_tokens=37)


def text_folder(path, **files):
    path.mkdir()
    for name, content in files.items():
        (path / f"{name}.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Reading a folder


def test_documents_are_the_files_in_order_or_the_pieces_of_them(tmp_path):
    folder = text_folder(tmp_path / "a", b="two|\n|three", a="\ufeffone", c=" \n")
    (folder / "deep").mkdir()
    (folder / "deep" / "d.txt").write_text("four", "utf8")
    (folder / ".hidden.txt").write_text("no", "utf8")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "b-checkpoint.txt").write_text("no", "utf8")
    (folder / "other.md").write_text("no", "utf8")
    texts = TextFolder(folder)
    expected = [("a.txt", "one"), ("b.txt", "two|\n|three"), ("deep/d.txt", "four")]
    assert list(texts) == list(texts) == expected
    pieces = TextFolder(folder, separator="|")
    assert [t for _, t in pieces] == ["one", "two", "three", "four"]
    assert len({name for name, _ in pieces}) == 4
    assert [t for _, t in TextFolder(folder, pattern="*.md")] == ["no"]


def test_other_texts_have_another_checksum(tmp_path):
    folder = text_folder(tmp_path / "a", a="one", b="two")
    sums = [TextFolder(folder).checksum(), TextFolder(folder, separator="|").checksum()]
    assert sums[0] == TextFolder(folder).checksum()
    (folder / "b.txt").rename(folder / "c.txt")
    sums.append(TextFolder(folder).checksum())
    (folder / "c.txt").write_text("twO", "utf8")
    sums.append(TextFolder(folder).checksum())
    assert len(set(sums)) == 4


def test_folders_without_text_and_unreadable_files(tmp_path):
    with pytest.raises(ValueError, match=r"there is no text: .*nowhere is no folder"):
        TextFolder(tmp_path / "nowhere")
    folder = text_folder(tmp_path / "a")
    with pytest.raises(ValueError, match=r"there is no text: .*nothing at all"):
        TextFolder(folder)
    (folder / "x.md").write_text("text", "utf8")
    with pytest.raises(ValueError, match=r"called \*.txt \(it holds 1 .md\)"):
        TextFolder(folder)
    (folder / "x.txt").write_text(" \n", "utf8")
    with pytest.raises(ValueError, match=r"there is no text: the files .* are empty"):
        list(TextFolder(folder))
    (folder / "y.txt").write_bytes("na\xefve".encode("latin-1"))
    with pytest.raises(ValueError, match=r"y.txt cannot be read as utf-8: .* 0xef in position 2.*another"):
        list(TextFolder(folder))
    assert [text for _, text in TextFolder(folder, encoding="latin-1")] == ["naïve"]
    with pytest.raises(ValueError, match=r"y.txt cannot be read as utf-16"):
        list(TextFolder(folder, encoding="utf-16"))
    with pytest.raises(ValueError, match="there is no encoding 'rot13' of text"):
        TextFolder(folder, encoding="rot13")
    with pytest.raises(ValueError, match="separator"):
        TextFolder(folder, separator="")


def test_links_to_folders_are_followed_and_nothing_is_read_twice(tmp_path):
    elsewhere = text_folder(tmp_path / "elsewhere", e="five")
    folder = text_folder(tmp_path / "a", a="one")
    (folder / "z").mkdir()
    (folder / "z" / "b.txt").write_text("two", "utf8")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "b").symlink_to(folder / "z")  # also under its own name, which comes later
    (folder / "z" / "back").symlink_to(folder)
    (folder / ".hidden").symlink_to(elsewhere)
    assert list(TextFolder(folder)) == [("a.txt", "one"), ("linked/e.txt", "five"), ("z/b.txt", "two")]
    assert [name for name, _ in TextFolder(folder, pattern="z/*.txt")] == ["z/b.txt"]
    assert len(list(TextFolder(folder, pattern="**/*.txt"))) == 3
    left = TextFolder(folder, without=[folder / "z", elsewhere / "e.txt"])
    assert [name for name, _ in left] == ["a.txt"]
    (folder / "z" / "b.txt").write_text("twO", "utf8")  # what is left out makes no other texts
    assert left.checksum() == TextFolder(folder, without=[folder / "z", elsewhere / "e.txt"]).checksum()


@pytest.mark.parametrize("separator", ["\n\n", "\r\n\r\n", "\n==\n"])
def test_a_separator_is_found_whatever_ends_a_line(tmp_path, separator):
    between = separator.replace("\r", "")
    texts = ["one\ntwo", "three.*"]
    folder = text_folder(tmp_path / "a", unix=between.join(texts))
    windows = text_folder(tmp_path / "b", windows=between.join(texts).replace("\n", "\r\n"))
    assert [text for _, text in TextFolder(folder, separator=separator)] == texts
    assert [text for _, text in TextFolder(windows, separator=separator)] == ["one\r\ntwo", "three.*"]


def test_a_separator_that_is_nowhere_is_an_error(tmp_path):
    folder = text_folder(tmp_path / "a", a="one|two", b="three")
    assert len(list(TextFolder(folder, separator="|"))) == 3  # in one of them is enough
    with pytest.raises(ValueError, match=r"the separator '%' is in none of the 2 file"):
        list(TextFolder(folder, separator="%"))
    with pytest.raises(ValueError, match=r"taken letter by letter"):
        list(TextFolder(folder, separator="\\n"))


def test_what_is_no_text_is_named(tmp_path):
    folder = text_folder(tmp_path / "a", a="one\ttwo\r\n\f", b=bytes(range(128)) * 3)
    with pytest.raises(ValueError, match=r"b.txt does not look like text: 84 of its 384 .*3 of them NULs"):
        list(TextFolder(folder))
    (folder / "b.txt").write_bytes(bytes(1000))
    with pytest.raises(ValueError, match=r"b.txt does not look like text"):
        list(TextFolder(folder))
    (folder / "b.txt").write_bytes(bytes(range(1, 128)) * 3)
    with pytest.raises(ValueError, match=r"b.txt .* such as those of a program or a picture"):
        list(TextFolder(folder))
    (folder / "b.txt").write_bytes("zwei".encode("utf-16-le"))
    with pytest.raises(ValueError, match=r"b.txt .* or say its encoding"):
        list(TextFolder(folder))
    (folder / "b.txt").write_bytes(b"a" * 500 + b"\x07")  # one stray character is none of that
    assert len(list(TextFolder(folder))) == 2


# Tokenizers


def test_tokenizers_made_for_texts():
    letters, end = make_tokenizer([("a", "ba"), ("b", "cb")], "char")
    assert letters == CharTokenizer(END_CHARACTER + "abc")
    assert letters.decode([end]) == END_CHARACTER
    pairs, end = make_tokenizer(TEXTS, "bpe", 270)
    assert isinstance(pairs, BPETokenizer)
    assert end == pairs.special_tokens[END] == pairs.vocab_size - 1
    short, _ = make_tokenizer([("a", "abababab"), ("b", "cdcdcdcd")], "bpe", 300, most=8)
    assert short == BPETokenizer.train("abababab", 300, (END,))
    with pytest.raises(ValueError, match=r"x.txt holds the character '\\x03'"):
        make_tokenizer([("x.txt", f"a{END_CHARACTER}b")], "char")
    with pytest.raises(ValueError, match='"bpe" or "char", got \'words\''):
        make_tokenizer(TEXTS, "words")
    with pytest.raises(ValueError, match="vocab_size is too small"):
        make_tokenizer(TEXTS, "bpe", 256)


# Writing


def test_every_document_is_there_once_with_its_end(shards):
    parts = {}
    for split in ("train", "held_out"):
        ids = shards.read(split, 0, shards.tokens(split))
        assert ids.dtype == torch.int64
        parts[split] = LETTERS.decode(ids).split(END_CHARACTER)
        assert parts[split].pop() == ""
        assert shards.index[split]["documents"] == len(parts[split])
        assert shards.index[split]["characters"] == sum(map(len, parts[split]))
    held = set(shards.index["held_out"]["names"])
    assert parts["held_out"] == [text for name, text in TEXTS if name in held]
    assert parts["train"] == [text for name, text in TEXTS if name not in held]
    assert len(held) == 1
    assert len(shards.index["train"]["shards"]) > 3


@given(st.integers(20, 400), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=10)
def test_where_shards_are_cut_makes_no_difference(tmp_path_factory, size, start, stop):
    folder = tmp_path_factory.mktemp("cut")
    cut, whole = written(folder / "cut", shard_tokens=size), written(folder / "whole")
    start, stop = sorted((start, stop))
    assert torch.equal(cut.read("train", start, stop), whole.read("train", start, stop))
    first, second = (next(ShardBatches(s, batch=5, length=7)) for s in (cut, whole))
    assert torch.equal(first, second)


class ManyCharacters(CharTokenizer):
    """The first tokens are LETTERS', and the last ones are private characters."""

    def __init__(self, size):
        self.alphabet = LETTERS.alphabet + "".join(map(chr, range(0xF0000, 0xF0000 + size - 27)))
        self.ids = {character: i for i, character in enumerate(self.alphabet)}


def test_a_shard_is_bare_numbers_of_two_bytes_or_four(tmp_path, monkeypatch):
    shards = written(tmp_path / "two")
    path = shards.folder / "train-00000.bin"
    assert path.stat().st_size == 2 * shards.tokens("train")
    index = json.loads((shards.folder / "index.json").read_bytes())
    assert index["dtype"] == "uint16"
    monkeypatch.setattr(Shards, "_load_tokenizer", lambda self: LETTERS)  # which takes long for so many
    assert written(tmp_path / "still two", tokenizer=ManyCharacters(1 << 16)).index["dtype"] == "uint16"
    shards = written(tmp_path / "four", tokenizer=ManyCharacters((1 << 16) + 1), end=1 << 16)
    assert shards.index["dtype"] == "uint32"
    assert (shards.folder / "train-00000.bin").stat().st_size == 4 * shards.tokens("train")
    assert 1 << 16 in shards.read("train", 0, shards.tokens("train"))


def test_what_is_held_out_depends_on_the_seed_alone(tmp_path):
    held = [
        written(tmp_path / str(i), held_out=0.25, seed=seed).index["held_out"]["names"]
        for i, seed in enumerate((0, 0, 1))
    ]
    assert held[0] == held[1] != held[2]
    sizes = {name: len(text) for name, text in TEXTS}
    for names in held:  # a share of the text, to within half of the longest document
        assert abs(sum(sizes[n] for n in names) - 0.25 * sum(sizes.values())) <= max(sizes.values()) / 2
    none = written(tmp_path / "none", held_out=0)
    assert none.tokens("held_out") == 0
    assert written(tmp_path / "most", held_out=0.99).index["train"]["documents"] == 1


def test_a_share_of_the_text_is_held_out_and_not_of_the_files(tmp_path):
    one_long = [("long", "a" * 9000), *((str(i), f"{'b' * i}c" + "d" * (99 - i)) for i in range(10))]
    for seed in range(8):
        drawn = draw_held_out(one_long, 0.05, seed)
        assert 0 not in drawn.numbers
        assert len(drawn.numbers) == 5
        assert drawn.share == pytest.approx(500 / 10_000)
    assert draw_held_out(one_long, 0.001, 0).numbers  # one at least
    assert len(draw_held_out(one_long, 0.999, 0).numbers) == 10  # and one is left
    assert (drawn.documents, drawn.characters, drawn.duplicates) == (11, 10_000, 0)


def test_the_same_documents_are_on_one_side(tmp_path):
    again = [(f"again {name}", text.replace("a", "a ") + "\r\n") for name, text in TEXTS]
    texts = [(name, text.replace("a", "a\n")) for name, text in TEXTS] + again
    for seed in range(10):
        drawn = draw_held_out(texts, 0.3, seed)
        assert drawn.duplicates == 12
        assert {i for i in drawn.numbers if i < 12} == {i - 12 for i in drawn.numbers if i >= 12}
        assert 0 < len(drawn.numbers) < 24
    spaced = CharTokenizer(LETTERS.alphabet + " \r\n")
    assert written(tmp_path / "a", texts=texts, tokenizer=spaced).index["duplicates"] == 12
    with pytest.raises(ValueError, match=r"all 2 documents are the same.*--data\.separator"):
        draw_held_out(texts[::12], 0.1, 0)
    assert draw_held_out(texts[::12], 0, 0).numbers == frozenset()


def test_shards_with_a_tokenizer_of_the_older_name_are_read(shards):
    (shards.folder / "tformer_tokenizer.json").rename(shards.folder / "tokenizer.json")
    index = json.loads((shards.folder / "index.json").read_bytes())
    index["tokenizer"]["file"] = "tokenizer.json"
    index["sha256"] = checksum_of_index(index)
    (shards.folder / "index.json").write_text(json.dumps(index), "utf8")
    assert Shards(shards.folder).tokenizer == LETTERS


def test_writing_refuses_and_leaves_no_index(tmp_path):
    with pytest.raises(ValueError, match="there is no text"):
        written(tmp_path / "a", texts=[])
    with pytest.raises(ValueError, match=r"0.txt is the only document"):
        written(tmp_path / "a", texts=TEXTS[:1])
    with pytest.raises(ValueError, match=r"x.txt: character 1, 'X', is not in the alphabet"):
        written(tmp_path / "a", texts=[*TEXTS, ("x.txt", "aXb")], held_out=0)
    for options in ({"held_out": 1.0}, {"shard_tokens": 0}, {"end": 27}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            written(tmp_path / "a", **options)
    assert not (tmp_path / "a" / "index.json").exists()
    with pytest.raises(ValueError, match=r"there are no shards in .*: it has no index.json"):
        Shards(tmp_path / "a")
    written(tmp_path / "a")  # what was begun is written over
    with pytest.raises(ValueError, match=r"there are shards in .* already"):
        written(tmp_path / "a")


def test_a_writer_that_is_stopped_leaves_no_shards(tmp_path, monkeypatch):
    from tformer_lib.data import shard_writing

    real, calls = shard_writing.replace_file, []

    def stops(path, content):
        calls.append(path.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(path, content)

    monkeypatch.setattr(shard_writing, "replace_file", stops)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path / "a", shard_tokens=37)
    with pytest.raises(ValueError, match="no index"):
        Shards(tmp_path / "a")
    calls.clear()
    monkeypatch.setattr(shard_writing, "replace_file", lambda p, c: (calls.append(p.name), real(p, c)))
    again = written(tmp_path / "a", shard_tokens=37)
    assert calls[-1] == "index.json"
    assert again.identity == written(tmp_path / "b", shard_tokens=37).identity


# Damage


def test_shards_that_are_missing_cut_off_or_altered(shards):
    path = shards.folder / "train-00001.bin"
    good = path.read_bytes()
    path.write_bytes(good[:-2])
    with pytest.raises(ValueError, match=r"train-00001.bin is cut off or altered: 72 bytes in place of 74"):
        Shards(shards.folder, verify=False)
    path.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    with pytest.raises(ValueError, match=r"train-00001.bin is altered: its checksum"):
        ShardBatches(shards.folder, batch=2, length=5)
    path.unlink()
    with pytest.raises(ValueError, match=r"the shard .*train-00001.bin is missing"):
        Shards(shards.folder)
    path.write_bytes(good)
    assert Shards(shards.folder).identity == shards.identity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: index["train"]["shards"].pop(), "altered"),
        (lambda index: index.update(end=3), "altered"),
        (lambda index: index.pop("sha256"), "altered"),
        (lambda index: index.update(format=2), "of format 2, and only 1 is known"),
        (lambda index: index.update(kind="cake"), "no index of token shards"),
    ],
)
def test_an_index_that_is_altered(shards, change, message):
    path = shards.folder / "index.json"
    index = json.loads(path.read_bytes())
    change(index)
    path.write_text(json.dumps(index), "utf8")
    with pytest.raises(ValueError, match=message):
        Shards(shards.folder)
    path.write_text("{", "utf8")
    with pytest.raises(ValueError, match="is not a JSON file"):
        Shards(shards.folder)


def test_another_tokenizer(shards):
    other = CharTokenizer(LETTERS.alphabet[::-1])
    assert Shards(shards.folder, tokenizer=LETTERS).vocab_size == 27
    with pytest.raises(ValueError, match="another tokenizer: theirs is a CharTokenizer of 27 tokens"):
        Shards(shards.folder, tokenizer=other)
    other.save(shards.folder / "tformer_tokenizer.json")
    with pytest.raises(ValueError, match="is not the tokenizer with which these shards were written"):
        Shards(shards.folder)
    index = json.loads((shards.folder / "index.json").read_bytes())
    (shards.folder / "tformer_tokenizer.json").write_text('{"kind": "cake"}', "utf8")
    from tformer_lib.files import checksum_of

    index["tokenizer"]["sha256"] = checksum_of(shards.folder / "tformer_tokenizer.json")
    index["sha256"] = checksum_of_index(index)
    (shards.folder / "index.json").write_text(json.dumps(index), "utf8")
    with pytest.raises(ValueError, match="its kind is 'cake'"):
        Shards(shards.folder)


def test_reading_what_is_not_there(shards):
    with pytest.raises(ValueError, match=r"there is no 5 to \d+"):
        shards.read("train", 5, shards.tokens("train") + 1)
    with pytest.raises(ValueError, match='"train" or "held_out", got \'test\''):
        shards.read("test", 0, 1)
    assert shards.read("train", 4, 4).shape == (0,)


# Batches


def places(batches, count):
    """The windows of the next batches, as rows."""
    return torch.cat([next(batches) for _ in range(count)])


@given(st.integers(1, 9), st.integers(1, 60), st.integers(0, 3))
@settings(max_examples=40)
def test_an_epoch_reads_every_window_once(folder_of_shards, batch, length, seed):
    batches = ShardBatches(folder_of_shards, batch=batch, length=length, seed=seed)
    windows = batches.windows
    ids = folder_of_shards.read("train", 0, folder_of_shards.tokens("train"))
    rows = places(batches, -(-3 * windows // batch))
    for epoch in range(3):
        order, offset = batches.order(epoch)
        assert sorted(order.tolist()) == list(range(windows))
        assert 0 <= offset <= batches.rest < length
        cut = consecutive_windows(ids[offset:], length)[:windows]  # by another way of cutting
        assert torch.equal(rows[epoch * windows : (epoch + 1) * windows], cut[order])


@pytest.fixture(scope="session")
def folder_of_shards(tmp_path_factory):
    return written(tmp_path_factory.mktemp("shards") / "s", shard_tokens=50)


def test_orders_differ_between_epochs_and_seeds(folder_of_shards):
    batches = ShardBatches(folder_of_shards, batch=4, length=3)
    other = ShardBatches(folder_of_shards, batch=4, length=3, seed=1)
    orders = [batches.order(0)[0], batches.order(1)[0], other.order(0)[0], other.order(1)[0]]
    assert len({tuple(order.tolist()) for order in orders}) == 4


def test_it_goes_on_exactly_wherever_it_stopped(folder_of_shards):
    def fresh():
        return ShardBatches(folder_of_shards, batch=4, length=9, seed=2)

    whole, run = [], fresh()
    count = 3 * run.windows // 4 + 2
    states = [run.state_dict()]
    for _ in range(count):
        whole.append(next(run))
        states.append(json.loads(json.dumps(run.state_dict())))
    assert count > 15
    for stopped in range(count):
        again = fresh()
        again.load_state_dict(states[stopped])
        assert torch.equal(next(again), whole[stopped])
    again.load_state_dict(states[0])  # and back
    assert torch.equal(next(again), whole[0])


@given(st.sampled_from([1, 2, 3, 4, 6, 12]), st.sampled_from([1, 2, 3, 4, 6, 12]), st.integers(0, 40))
@settings(max_examples=40)
def test_all_processes_together_read_the_batch_and_others_may_go_on(folder_of_shards, before, after, taken):
    def fresh():
        return ShardBatches(folder_of_shards, batch=12, length=7)

    whole = fresh()
    for _ in range(taken):
        next(whole)
    first = [fresh().shard(rank, before) for rank in range(before)]
    for _ in range(taken):
        rows = [next(view) for view in first]
    states = [view.state_dict() for view in first]
    assert all(state == whole.state_dict() for state in states)
    second = [fresh().shard(rank, after) for rank in range(after)]
    for view in second:
        view.load_state_dict(states[0])
    for _ in range(3):
        rows = [next(view) for view in second]
        assert all(len(r) == 12 // after for r in rows)
        assert torch.equal(torch.cat(rows), next(whole))


def test_a_view_goes_on_from_where_the_batches_stand(folder_of_shards):
    batches, whole = (ShardBatches(folder_of_shards, batch=4, length=7) for _ in range(2))
    for each in (batches, whole):
        next(each)
    assert torch.equal(next(batches.shard(1, 2)), next(whole)[2:])
    assert batches.state_dict()["batches"] == 1  # a view has a count of its own


def test_it_is_sent_to_other_processes_without_its_tokens(folder_of_shards):
    batches = ShardBatches(folder_of_shards, batch=4, length=7)
    next(batches)
    sent = pickle.loads(pickle.dumps(batches))
    assert torch.equal(next(sent), next(batches))
    assert not pickle.loads(pickle.dumps(batches)).shards._maps


def test_the_held_out_part_can_be_read_too(tmp_path):
    shards = written(tmp_path / "s", held_out=0.3)
    rows = next(ShardBatches(shards, batch=3, length=5, split="held_out"))
    held = LETTERS.decode(shards.read("held_out", 0, shards.tokens("held_out")))
    assert all(LETTERS.decode(row) in held for row in rows)


def test_batches_that_cannot_be(folder_of_shards, tmp_path):
    def make(**options):
        return ShardBatches(folder_of_shards, **({"batch": 4, "length": 7} | options))

    tokens = folder_of_shards.tokens("train")
    assert make(length=tokens - 1).windows == 1
    with pytest.raises(ValueError, match=f"a window takes {tokens + 1} tokens, and train has {tokens}"):
        make(length=tokens)
    with pytest.raises(ValueError, match=r"too short: .* held_out has 0"):
        ShardBatches(written(tmp_path / "s", held_out=0), batch=1, length=1, split="held_out")
    for options in ({"batch": 0}, {"length": 0}, {"seed": -1}, {"split": "test"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            make(**options)
    with pytest.raises(ValueError, match="a batch of 4 windows cannot be shared by 3 processes"):
        make().shard(0, 3)
    with pytest.raises(ValueError, match="rank"):
        make().shard(2, 2)
    with pytest.raises(ValueError, match="world_size"):
        make().shard(0, 0)


def test_a_state_of_other_batches(folder_of_shards, tmp_path):
    batches = ShardBatches(folder_of_shards, batch=4, length=7)
    state = batches.state_dict()
    for key, value in (("batch", 8), ("length", 6), ("seed", 1), ("split", "held_out")):
        with pytest.raises(ValueError, match=f"of other batches: {key} was {value!r} and is"):
            batches.load_state_dict(state | {key: value})
    other = ShardBatches(written(tmp_path / "s", texts=TEXTS[1:]), batch=4, length=7)
    with pytest.raises(ValueError, match="of other batches: shards was"):
        other.load_state_dict(state)
    for wrong in ({}, {"batches": 1}, None, state | {"more": 1}):
        with pytest.raises(ValueError, match="no state of batches"):
            batches.load_state_dict(wrong)
    with pytest.raises(ValueError, match="batches must be at least 0"):
        batches.load_state_dict(state | {"batches": -1})


def test_shards_can_be_moved(shards, tmp_path):
    shutil.move(shards.folder, tmp_path / "elsewhere")
    assert Shards(tmp_path / "elsewhere").identity == shards.identity

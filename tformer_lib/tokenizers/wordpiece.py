"""WordPiece: the tokenizer of BERT, whose tokens inside a word begin with ##.

The text is first made plain (small letters, no accents) and cut into words and punctuation marks; then
each word is cut into the longest tokens that fit, from left to right: "playing" -> play ##ing.
"""

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

from tformer_lib.numbers import whole
from tformer_lib.tokenizers.merging import learn_merges
from tformer_lib.tokenizers.pretokenise import bert_words, utf8
from tformer_lib.tokenizers.specials import WordMemory, check_specials, split_specials, token_numbers
from tformer_lib.tokenizers.storage import load_json, save_json

KIND = "WordPiece tokenizer"
UNKNOWN = "[UNK]"
SPECIALS = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 200  # characters, in BERT's code


class WordPieceTokenizer:
    """Each word becomes the longest token that begins it, then the longest that continues it, to its end.

    A word that cannot be cut so, because of a character that training never saw, is one [UNK]. The text
    is not kept: capitals, accents and the number of spaces are lost.

    Args:
        tokens: the vocabulary; a token's number is its place.
        special_tokens: which of them mark places; text cannot make them. "[UNK]" must be one.
        longest_word: how many characters a word may have; a longer one is unknown.

    Raises:
        ValueError: if a token is empty or stands there twice, if a special token is not among the tokens,
            if "[UNK]" is missing, or if `longest_word` is less than 1.

    Source:
        Schuster and Nakajima 2012; Wu et al. 2016, section 4.1; Devlin et al. 2019.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        special_tokens: Sequence[str] = SPECIALS,
        *,
        longest_word: int = LONGEST_WORD,
    ):
        self.tokens = list(tokens)
        self.vocab = {token: number for number, token in enumerate(self.tokens)}
        names = check_specials(special_tokens)
        if "" in self.vocab:
            raise ValueError(f"token {self.vocab['']} is empty")
        if len(self.vocab) < len(self.tokens):
            twice = next(t for number, t in enumerate(self.tokens) if self.vocab[t] != number)
            raise ValueError(f"the vocabulary holds {twice!r} twice")
        if UNKNOWN not in names:
            raise ValueError(f"{UNKNOWN} must be one of the special tokens: it stands for unknown words")
        missing = [name for name in names if name not in self.vocab]
        if missing:
            raise ValueError(f"the special token {missing[0]!r} is not in the vocabulary")
        self.special_tokens = {name: self.vocab[name] for name in names}
        self.longest_word = whole("longest_word", longest_word, 1)
        self._pieces = {t: i for t, i in self.vocab.items() if t not in self.special_tokens}
        self._longest = max(map(len, self._pieces), default=0)
        self._words = WordMemory(self._encode_word)

    @classmethod
    def train(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str] = SPECIALS
    ) -> "WordPieceTokenizer":
        """Merge the most frequent pair of pieces until there are `vocab_size` tokens.

        The numbers go to the special tokens, then to the characters in order of their code points, as
        they begin a word and then, with ##, as they continue one, then to the merges. If no pair is left
        there are fewer tokens.

        Schuster and Nakajima choose the pair that raises the likelihood of the text most,
        count(ab) / (count(a) count(b)); here it is the most frequent one, as in byte-pair encoding. So
        does the library `tokenizers`, whose numbers for the ##-characters, and with them its choice among
        pairs of equal count, change from run to run; ours do not.

        Raises:
            ValueError: if `vocab_size` is less than the special tokens and characters, if a special token
                is empty or stands there twice, or if "[UNK]" is not one of them.
        """
        utf8(text)
        names = check_specials(special_tokens)
        count = Counter(bert_words(text))
        alphabet = sorted({c for word in count for c in word})
        inside = sorted({f"##{c}" for word in count for c in word[1:]})
        tokens = [*names, *(piece for piece in (*alphabet, *inside) if piece not in names)]
        if whole("vocab_size", vocab_size) < len(tokens):
            made = f"{len(names)} special tokens and {len(tokens) - len(names)} characters"
            raise ValueError(f"vocab_size is too small: {made} make {len(tokens)}, got {vocab_size}")
        number = {token: i for i, token in enumerate(tokens)}
        words = [[number[word[0]], *(number[f"##{c}"] for c in word[1:])] for word in count]
        for _ in learn_merges(words, list(count.values()), tokens, join_pieces, vocab_size):
            pass
        return cls(tokens, names)

    @classmethod
    def from_vocab(cls, tokens: Sequence[str], *, longest_word: int = LONGEST_WORD) -> "WordPieceTokenizer":
        """The tokenizer of a published vocabulary, such as the lines of BERT's `vocab.txt`.

        Special are those of [PAD], [UNK], [CLS], [SEP], [MASK] that it holds. Hugging Face's libraries end
        words at 100 characters: give this as `longest_word` for a vocabulary that comes from there.

        Raises:
            ValueError: if a token is empty or stands there twice, or if "[UNK]" is missing.
        """
        return cls(tokens, tuple(name for name in SPECIALS if name in tokens), longest_word=longest_word)

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return len(self.tokens)

    def encode(self, text: str, allow_special: Iterable[str] = ()) -> list[int]:
        """The text's tokens; "[CLS]" and "[SEP]" are not added.

        Args:
            text: any Unicode text.
            allow_special: the special tokens that the text may contain; any other name is ordinary text.

        Raises:
            ValueError: if `allow_special` names an unknown token, or if the text has a lone surrogate.
        """
        ids: list[int] = []
        for piece, special in split_specials(text, allow_special, self.special_tokens):
            if special:
                ids.append(self.special_tokens[piece])
                continue
            for word in bert_words(piece):
                ids += self._words[word]
        return ids

    def _encode_word(self, word: str) -> list[int]:
        """The longest pieces from left to right, or [UNK] for the whole word."""
        if len(word) > self.longest_word:
            return [self.vocab[UNKNOWN]]
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                if (piece := prefix + word[start:end]) in self._pieces:
                    ids.append(self._pieces[piece])
                    start = end
                    break
            else:
                return [self.vocab[UNKNOWN]]
        return ids

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The tokens with spaces between them, those that begin with ## joined to the one before.

        Raises:
            ValueError: if there is no token with one of the numbers.
            TypeError: if one is no whole number.
        """
        pieces = [self.tokens[i] for i in token_numbers(ids, self.vocab_size)]
        return " ".join(pieces).replace(" ##", "")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary to one JSON file, in one step."""
        content = {
            "special_tokens": list(self.special_tokens),
            "tokens": self.tokens,
            "longest_word": self.longest_word,
        }
        save_json(path, KIND, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "WordPieceTokenizer":
        """The tokenizer that `save` wrote.

        Raises:
            ValueError: if the file is not one; the message says what is wrong with it.
        """
        fields = {"special_tokens": list[str], "tokens": list[str]}
        content = load_json(path, KIND, fields, {"longest_word": 100})
        try:
            return cls(content["tokens"], content["special_tokens"], longest_word=content["longest_word"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordPieceTokenizer):
            return NotImplemented
        ours = self.tokens, self.special_tokens, self.longest_word
        return ours == (other.tokens, other.special_tokens, other.longest_word)

    __hash__ = None  # type: ignore[assignment]


def join_pieces(left: str, right: str) -> str:
    """play + ##ing = playing, ##in + ##g = ##ing."""
    return left + right.removeprefix("##")

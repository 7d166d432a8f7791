"""What a checkpoint says about its model: names and values, each checked as it is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from tformer_lib.files import read_json
from tformer_lib.numbers import brief

ACTIVATIONS = {  # from the name that `transformers` gives an activation to ours
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True)
class Settings:
    """The values of a `config.json`, or of whatever plays its part.

    Args:
        where: what errors call the place that the values come from.
        values: name and value.
        numbers: the most that a size may be, if there is a bound.
        tensors: the most blocks that there may be, if there is a bound.
    """

    where: str
    values: dict[str, Any]
    numbers: int | None = None
    tensors: int | None = None

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """The settings in a JSON file.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it does not hold a JSON object.
        """
        try:
            values = read_json(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{path} is missing: it says which model the tensors belong to") from None
        except IsADirectoryError:
            raise ValueError(f"{path} is not a JSON file: it is a folder") from None
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold a JSON object, got {type(values).__name__}")
        return cls(str(path), values)

    def beside(self, tensors: Mapping[str, Tensor]) -> "Settings":
        """The same settings, of which no size may be beyond what these tensors can fill.

        A model is built from what the settings say, before its tensors are looked at: of blocks without end,
        if they say so. What is quickly built is let pass, so that the tensors that it lacks can be named.
        """
        numbers = sum(tensor.numel() for tensor in tensors.values())
        return replace(self, numbers=max(numbers, 10**6), tensors=max(len(tensors), 100))

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default where the setting is missing or null."""
        value = self.values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        """A positive whole number.

        Raises:
            ValueError: if it is something else, or is missing and there is no default.
        """
        value = self.get(name, default)
        if type(value) is not int or value < 1:
            raise ValueError(f"{self.where}: {name} must be a positive whole number, got {brief(value)}")
        if self.numbers is not None and value > self.numbers:
            raise ValueError(
                f"{self.where}: {name} is {brief(value)}, far more than the tensors there can fill"
            )
        return value

    def blocks(self, name: str) -> int:
        """The number of blocks, each of which has tensors of its own.

        Raises:
            ValueError: if it is no positive whole number, or there are not as many tensors.
        """
        value = self.whole(name)
        if self.tensors is not None and value > self.tensors:
            raise ValueError(
                f"{self.where}: {name} is {brief(value)}, far more than the tensors there can fill"
            )
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A positive number.

        Raises:
            ValueError: if it is something else, or is missing and there is no default.
        """
        value = self.get(name, default)
        if type(value) not in (int, float) or not 0 < value < 1e308:  # a whole number may be beyond floats
            raise ValueError(f"{self.where}: {name} must be a positive number, got {brief(value)}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false.

        Raises:
            ValueError: if it is something else.
        """
        value = self.get(name, default)
        if type(value) is not bool:
            raise ValueError(f"{self.where}: {name} must be true or false, got {brief(value)}")
        return value

    def one_of(self, name: str, *allowed: Any) -> Any:
        """One of the allowed values, the first of which is the default.

        Raises:
            ValueError: if it is another one.
        """
        value = self.get(name, allowed[0])
        if value not in allowed:
            choices = " or ".join(map(repr, allowed))
            raise ValueError(f"{self.where}: {name}={brief(value)} is not supported here, only {choices}")
        return value

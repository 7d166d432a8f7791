"""What a checkpoint says about its model: names and values, each checked as it is read."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """

    where: str
    values: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """The settings in a JSON file.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it does not hold a JSON object.
        """
        try:
            values = json.loads(path.read_text("utf8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} is missing: it says which model the tensors belong to") from None
        except ValueError as error:  # UnicodeDecodeError is one
            raise ValueError(f"{path} is not a JSON file: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold a JSON object, got {type(values).__name__}")
        return cls(str(path), values)

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
            raise ValueError(f"{self.where}: {name} must be a positive whole number, got {value!r}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A positive number.

        Raises:
            ValueError: if it is something else, or is missing and there is no default.
        """
        value = self.get(name, default)
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            raise ValueError(f"{self.where}: {name} must be a positive number, got {value!r}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false.

        Raises:
            ValueError: if it is something else.
        """
        value = self.get(name, default)
        if type(value) is not bool:
            raise ValueError(f"{self.where}: {name} must be true or false, got {value!r}")
        return value

    def one_of(self, name: str, *allowed: Any) -> Any:
        """One of the allowed values, the first of which is the default.

        Raises:
            ValueError: if it is another one.
        """
        value = self.get(name, allowed[0])
        if value not in allowed:
            choices = " or ".join(map(repr, allowed))
            raise ValueError(f"{self.where}: {name}={value!r} is not supported here, only {choices}")
        return value

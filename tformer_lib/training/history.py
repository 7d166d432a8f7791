"""What a training run leaves behind."""

from dataclasses import dataclass, field


@dataclass
class History:
    """What a run left behind: one entry a step in each list."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)  # before clipping
    lr: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of the whole run

"""Attention for long sequences: backends that take the place of `Attend`, one a module.

Each is a `Backend` (`tformer_lib.core.attention`), and goes into a layer as `MultiHeadAttention(...,
backend=...)`. None has `Attend`'s dropout of weights or its bias of scores, so that positions have to come
from the tokens or from rotations of queries and keys.
"""

"""Multi-head latent attention: the cache holds one short vector for each token (DeepSeek-AI 2024)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.attention import Attend, Backend
from tformer_lib.core.cache import LayerCache, already_read, undone_if_refused
from tformer_lib.core.positions import Rotary
from tformer_lib.inputs import check_tokens
from tformer_lib.numbers import whole


class MultiHeadLatentAttention(nn.Module):
    """Keys and values of all heads are made from one latent of each token, c = RMSNorm(W_c x).

    Head h has the keys [U_h c; r] and the values V_h c. The rotary part r = rotate(W_r x), which carries the
    place, is one for all heads: a turn between U_h and the query could not be moved to the query. Queries are
    [W_q,h x; rotate(W_s,h x)], and scores are divided by sqrt(Dh + Dr). A token's latent and its r are all
    that the cache holds: Dc + Dr numbers, where multi-head attention holds 2 H Dh. DeepSeek-AI (2024,
    DeepSeek-V2), section 2.1; the norm of the latent is mentioned in section 3.1.2.

    With a cache the keys and values are never made. A score needs q^T U_h c = (U_h^T q)^T c: U_h moves into
    the query. The output is V_h (sum of a_s c_s): latents are averaged, and V_h is applied once. That is the
    absorbed form; the other is the expanded one, cheaper for training. Both give the same numbers.

    It takes the place of a block's `MultiHeadAttention` for self-attention.

    Args:
        d_model: the width D of the tokens.
        n_heads: the number of heads H.
        d_latent: the width Dc of the latent.
        d_head: the width Dh of a head's keys (without the rotary part) and values; D / H if None.
        d_rotary: the width Dr of the rotary part, even.
        base: of the rotary frequencies.
        backend: what makes outputs of queries, keys and values; an `Attend` if None. Its scores must not have
            a bias of their own.

    Raises:
        ValueError: if a size is not positive, `d_rotary` is odd, or H does not divide D and `d_head` is None;
            in forward, if the tokens are not D wide, the mask does not broadcast, or a context is given.
        TypeError: if a size is no whole number; in forward, if the mask is not boolean.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_latent: int,
        d_head: int | None = None,
        d_rotary: int,
        base: float = 10000.0,
        backend: Backend | None = None,
    ):
        super().__init__()
        d_model, n_heads = whole("d_model", d_model, 1), whole("n_heads", n_heads, 1)
        if d_head is None:
            if d_model % n_heads:
                raise ValueError(
                    f"n_heads must divide d_model where d_head is not given, got {d_model} and {n_heads}"
                )
            d_head = d_model // n_heads
        self.d_model, self.n_heads = d_model, n_heads
        self.d_head, self.d_latent = whole("d_head", d_head, 1), whole("d_latent", d_latent, 1)
        self.rotary = Rotary(d_rotary, base)
        self.d_rotary = self.rotary.d_head
        self.W_q = nn.Linear(d_model, n_heads * self.d_head, bias=False)
        self.W_s = nn.Linear(d_model, n_heads * self.d_rotary, bias=False)  # the queries' rotary part
        self.W_c = nn.Linear(d_model, self.d_latent, bias=False)
        self.W_r = nn.Linear(d_model, self.d_rotary, bias=False)  # the keys' rotary part, one for all heads
        self.norm_c = nn.RMSNorm(self.d_latent, eps=1e-6)
        self.W_u = nn.Linear(
            self.d_latent, n_heads * self.d_head, bias=False
        )  # all heads' keys of the latent
        self.W_v = nn.Linear(self.d_latent, n_heads * self.d_head, bias=False)  # and their values
        self.W_o = nn.Linear(n_heads * self.d_head, d_model, bias=False)
        self.backend = Attend() if backend is None else backend
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform matrices (Glorot and Bengio 2010, eq. 16)."""
        for linear in (self.W_q, self.W_s, self.W_c, self.W_r, self.W_u, self.W_v, self.W_o):
            nn.init.xavier_uniform_(linear.weight)

    @property
    def key_maps(self) -> Float[Tensor, "H Dh Dc"]:
        """Each head's map from the latent to its keys; W_u has them one below the other."""
        return self.W_u.weight.unflatten(0, (self.n_heads, self.d_head))

    @property
    def value_maps(self) -> Float[Tensor, "H Dh Dc"]:
        """Each head's map from the latent to its values, of W_v."""
        return self.W_v.weight.unflatten(0, (self.n_heads, self.d_head))

    def heads(self, x: Float[Tensor, "B N _"], width: int) -> Float[Tensor, "B H N _"]:
        """(B, N, H * width) -> (B, H, N, width)."""
        return x.unflatten(-1, (self.n_heads, width)).transpose(1, 2)

    def expanded(self, q: Tensor, s: Tensor, c: Tensor, r: Tensor, mask: Tensor | None) -> Tensor:
        """Each head's output (B, H, N, Dh), by making its keys and values of the latents (B, 1, S, Dc)."""
        k = torch.cat(
            (c @ self.key_maps.mT, r.expand(-1, self.n_heads, -1, -1)), dim=-1
        )  # (B, H, S, Dh + Dr)
        return self.backend(torch.cat((q, s), dim=-1), k, c @ self.value_maps.mT, mask)

    def absorbed(self, q: Tensor, s: Tensor, c: Tensor, r: Tensor, mask: Tensor | None) -> Tensor:
        """The same, by attending to the latents themselves: U acts on the queries, V on the averages."""
        everybody = (-1, self.n_heads, -1, -1)
        k = torch.cat((c, r), dim=-1).expand(everybody)  # (B, H, S, Dc + Dr), without a copy
        q = torch.cat((q @ self.key_maps, s), dim=-1)
        # The backend divides by the root of the width that it sees.
        q = q * ((self.d_latent + self.d_rotary) / (self.d_head + self.d_rotary)) ** 0.5
        return self.backend(q, k, c.expand(everybody), mask) @ self.value_maps.mT

    @undone_if_refused
    def forward(
        self,
        x: Float[Tensor, "B N _D"],
        context: Tensor | None = None,
        mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B N _D"]:
        """Attend from `x` (B, N, D) to itself; the mask is as in `MultiHeadAttention`.

        With a `cache`, `x` are the tokens that follow those it holds; it is given latents (B, 1, N, Dc) and
        rotary parts (B, 1, N, Dr), and the absorbed form is computed. A call that raises leaves it as it was.
        """
        check_tokens("x", x, self.d_model, self.W_o.weight)
        if context is not None:
            raise ValueError("latent attention is self-attention: it takes no context")
        past = already_read(cache)
        q, s = self.heads(self.W_q(x), self.d_head), self.heads(self.W_s(x), self.d_rotary)
        c, r = self.norm_c(self.W_c(x))[:, None], self.W_r(x)[:, None]  # (B, 1, N, Dc), (B, 1, N, Dr)
        s, r = self.rotary(s, past), self.rotary(r, past)
        if cache is None:
            y = self.expanded(q, s, c, r, mask)
        else:
            c, r = cache.extend(c, r)
            y = self.absorbed(q, s, c, r, mask)
        return self.W_o(y.transpose(1, 2).flatten(2))

"""The language-model loss is the cross-entropy of the next token, position by position."""

import torch
from torch import nn

from tformer_lib.models.language import language_loss


def test_it_is_the_mean_negative_log_probability_of_the_next_token():
    torch.manual_seed(0)
    table = nn.Embedding(7, 7)  # a bigram model: row = token, columns = logits of the next
    batch = torch.randint(7, (3, 6))
    by_hand = [-table.weight[row[n]].log_softmax(-1)[row[n + 1]] for row in batch for n in range(5)]
    torch.testing.assert_close(language_loss(table, batch), torch.stack(by_hand).mean())

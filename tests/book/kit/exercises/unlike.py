"""Wrong solutions that readers write and no rule makes, without words of their own: they must not pass.

Each is written as in `Exercise.add_mistakes`; there is one a line, with several changes divided by `;;`. They
are what would pass if the inputs were as few as rejecting all mutants takes.
"""

UNLIKE: dict[str, list[str]] = {
    "sequences.most_frequent_pair": ['(-counts[pair], pair) => (-counts[pair], "".join(pair))'],
    "sequences.merge_pair": [
        "=> lambda tokens, pair: [w[::-1] for w in merge_pair([t[::-1] for t in tokens[::-1]], "
        "tuple(p[::-1] for p in pair[::-1]))][::-1]",  # from the right
        "tuple(tokens[n : n + 2]) == pair => ''.join(tokens[n : n + 2]) == ''.join(pair) != tokens[n]",
    ],
    "sequences.gru_step": ["torch.sigmoid => (lambda a: a.exp() / (1 + a.exp()))"],
    "attention.masked_weights": [
        "lowest = => lowest = -100  #",  # not low enough
        "=> lambda s, m: (e := s.exp() * m) / e.sum(0).clamp(min=1e-30)",  # no maximum subtracted
        "=> lambda s, m: (e := (s - s.amax(0)).exp() * m) / e.sum(0).clamp(min=1e-30)",  # a forbidden one's
        "=> lambda s, m: (e := (s - s.max()).exp() * m) / e.sum(0).clamp(min=1e-30)",  # one for all columns
    ],
    "attention.nadaraya_watson": [
        "softmax_columns( => (lambda s: (e := (s - s.max()).exp()) / e.sum(0))(",  # one maximum for all
    ],
    "multi_head.causal_self_attention": [
        "scores.masked_fill(future, -math.inf).softmax(dim=-1) => (w := scores.softmax(-1) * ~future) / "
        "w.sum(-1, keepdim=True)",
        "-math.inf => -100.0",
        ".softmax(dim=-1) => .exp() ;; weights @ v => (weights / weights.sum(-1, keepdim=True)) @ v",
    ],
    "bert.input_embedding": [
        "X = X - X.mean(dim=0) => mean = X.mean(dim=0) ;; X / (X.square().mean(dim=0) => "
        "(X - mean) / (X.square().mean(dim=0) - mean.square()",
    ],
    "bert.masked_loss": ["Z.log_softmax(dim=1) => (Z - Z.exp().sum(1, keepdim=True).log())"],
    "bert.align_labels": ["return [tags[w] => rest = iter(tags); return [next(rest)"],  # words counted
    "bert.entity_f1": [
        "start, end)) => end))",  # only the end compared
        "found.add((s, => found.add((",  # the sentence is not looked at
        "=> lambda true, predicted: entity_f1([sum(true, [])], [sum(predicted, [])])",  # sentences joined
        'tags[end] == "I-" + tag[2:] => tags[end][2:] == tag[2:] ;; tag.startswith("B-") => '
        'tag[0] == "B" and ["", *tags][start][2:] != tag[2:]',  # neighbours joined
        "2 * right / (len(t) + len(p)) => right / len(t)",  # recall
        "2 * right / (len(t) + len(p)) => right / len(p)",  # precision
        "2 * right / (len(t) + len(p)) => (right / len(t) + right / len(p)) / 2",
    ],
    "bert.mean_pooling": ["real[:, :, None] => real.sort(dim=1, descending=True).values[:, :, None]"],
    "gpt.perplexity": [
        "log_softmax(dim=1) => softmax(dim=1).log()",
        "logits.log_softmax(dim=1) => (logits - logits.exp().sum(-1, keepdim=True).log())",
        "logits.log_softmax(dim=1) => (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()",
        "(-log_p.mean()).exp() => (log_p.exp().prod() ** (-1 / len(log_p)))",
    ],
    "gpt.top_p": [
        "return => kept = p * (p >= kept[kept > 0].min()); return",  # all ties kept
        "sorted(range(len(p)), => sorted(reversed(range(len(p))),",  # the last of equals
    ],
    "gpt.cached_step": ["math.sqrt(len(q)) => math.sqrt(K.shape[1])"],
    "translation.beam_step": [
        "log_p + step => log_p.masked_fill(log_p < log_p.max(), -math.inf) + step",
        "log_p + step => log_p.masked_fill(torch.arange(k) > 0, -math.inf) + step",
        "(i % k, i // k, total) => (i % k, i // k, step.flatten()[i].item())",
    ],
    "translation.length_score": ["return sorted( => return sorted(scores, key=lambda s: s[1])[::-1]  #"],
    "translation.bleu": ["tuple(words[i : i + n]) => ''.join(words[i : i + n])"],
    "translation.cross_attention_columns": ["-math.inf => -100.0"],
    "vit.class_attention": ["return => e = (K.T @ q / math.sqrt(len(q))).exp(); return V @ e / e.sum()  #"],
    "image_gpt.grey_tokens": [
        "(images * levels).long() => ((images * levels).ceil() - 1).clamp(min=0).long()"
    ],
    "image_gpt.visible": [
        "torch.arange(height * width).reshape(height, width) => torch.arange(height)[:, None] * height + "
        "torch.arange(width) ;; row * width => row * height",
    ],
    "image_gpt.linear_probe": ["one_hot(labels, classes) => one_hot(labels)"],
    "image_gpt.mel_filterbank": [
        "torch.arange(frame // 2 + 1) * rate / frame => torch.linspace(0, rate / 2, frame // 2 + 1)",
    ],
    "long_sequences.merge": [
        f"first = => m = {m}; p, r = (a - m).exp(), (b - m).exp(); first = ;; "
        "first * Y_1 + (1 - first) * Y_2 => ((p * Y_1 + r * Y_2) / (p + r)).to(Y_1.dtype) ;; "
        "torch.logaddexp(a, b) => (m + (p + r).log()).to(a.dtype)"
        for m in ("torch.zeros(1, dtype=torch.double)", "max(a.max(), b.max())", "(a + b) / 2", "a")
    ],
    "long_sequences.low_rank_columns": ["len(Q) => len(E)"],
    "long_sequences.crossing": ["/ (4 * d_model) => // (4 * d_model)"],
    "inside.patching_effect": ["(donor - base) => (donor - base).abs()"],
}

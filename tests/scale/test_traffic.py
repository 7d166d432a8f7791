"""Messages counted in every engine are those of the formulas, on two processes and on four."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from tformer_book.scale.pipeline import pipeline_order
from tformer_lib import TransformerConfig
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.scale import launch, tensor_parallel, traffic


def small_gpt(blocks=2, tied=True):
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, n_heads=4, n_blocks=blocks)
    return GPT(config, 32, positions=LearnedPositions(8, 16), tied=tied).double()


def some_rows():
    return torch.randint(32, (8, 9), generator=torch.Generator().manual_seed(1))


def test_formulas_by_hand():
    assert traffic.all_reduce_bytes(96, 4) == 144
    assert traffic.all_gather_bytes(96, 4) == traffic.reduce_scatter_bytes(96, 4) == 72
    assert traffic.data_parallel_bytes(1000, 4) == 6000
    assert traffic.sharded_bytes(1000, 4) == 9000
    assert traffic.sharded_bytes(1000, 4, kept=200) == 9000 - 600
    assert traffic.tensor_parallel_bytes(1000, 2, 4) == 4 * 6000
    assert [traffic.pipeline_bytes(1000, stage, 3) for stage in range(3)] == [4000, 8000, 4000]
    assert traffic.ring_attention_bytes(1000, 4) == 6000
    assert traffic.ring_attention_bytes(1000, 4, backward=True) == 12000


def test_one_process_sends_nothing():
    assert traffic.all_reduce_bytes(96, 1) == traffic.all_gather_bytes(96, 1) == 0
    assert traffic.pipeline_bytes(1000, 0, 1) == traffic.sharded_bytes(1000, 1) == 0


def test_bad_input():
    with pytest.raises(ValueError, match="size"):
        traffic.all_reduce_bytes(-1, 2)
    with pytest.raises(ValueError, match="n must be at least 1"):
        traffic.all_gather_bytes(8, 0)
    with pytest.raises(ValueError, match="of 10 parameters 11 cannot be kept"):
        traffic.sharded_bytes(10, 2, kept=11)
    with pytest.raises(ValueError, match="counted from 0 to 1, got 2"):
        traffic.pipeline_bytes(10, 2, 2)
    with pytest.raises(NotImplementedError, match="'scatter_' is not counted"):
        traffic._message("scatter_", (), None)


def sent_by_kind(seen):
    return {kind: sum(m.sent for m in seen.messages if m.kind == kind) for kind in seen.calls()}


def _every_engine():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.nn.parallel import DistributedDataParallel

    n, rank = dist.get_world_size(), dist.get_rank()
    found = {}

    def counted(name, work):
        with traffic.Traffic() as seen:
            work()
        found[name] = seen.calls(), seen.sent, sent_by_kind(seen)

    def collectives():
        x = torch.ones(16)
        dist.all_reduce(x)
        dist.all_gather_into_tensor(torch.empty(16 * n), x)
        dist.all_gather([torch.empty(16) for _ in range(n)], x)
        dist.reduce_scatter_tensor(torch.empty(16 // n), x)
        dist.broadcast(x, 0)
        dist.reduce(x, 0)
        dist.all_to_all_single(torch.empty(16), x)
        dist.barrier()
        sending = dist.isend(x, (rank + 1) % n)
        dist.recv(torch.empty(16), (rank - 1) % n)
        sending.wait()

    pair = dist.new_group([0, 1])

    def in_a_group():
        if rank < 2:
            dist.all_reduce(torch.ones(16), group=pair)

    mine = some_rows().chunk(n)[rank]
    ddp, sharded, partly = DistributedDataParallel(small_gpt()), small_gpt(), small_gpt()
    for model, again in ((sharded, True), (partly, None)):
        for block in model.transformer.blocks:
            fully_shard(block)
        fully_shard(model, reshard_after_forward=again)
    mesh = init_device_mesh("cpu", (n,))
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)).double()
    parallelize_module(mlp, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.randn(2, 8, 16).double().requires_grad_()
    spread = distribute_tensor(torch.ones(8, 4), mesh, [Shard(0)])
    counted("collectives", collectives)
    counted("group", in_a_group)
    counted("ddp", lambda: language_loss(ddp, mine).backward())
    counted("sharded", lambda: language_loss(sharded, mine).backward())
    counted("partly", lambda: language_loss(partly, mine).backward())
    counted("tensor", lambda: mlp(x).square().sum().backward())
    counted("redistributed", lambda: spread.redistribute(placements=[Replicate()]))
    counted("inside an operation", lambda: (spread.sum(dim=0) * 2).full_tensor())
    return found


@pytest.mark.parametrize("n", [2, 4])
def test_every_engine_sends_what_the_formulas_say(n):
    gpt = small_gpt()
    P = sum(p.numel() for p in gpt.parameters())
    kept = P - sum(p.numel() for p in gpt.transformer.blocks.parameters())
    for rank, found in enumerate(launch(_every_engine, n)):
        calls, _, by_kind = found["collectives"]
        assert calls == {
            "all_reduce": 1, "all_gather": 2, "reduce_scatter": 1, "broadcast": 1, "reduce": 1,
            "all_to_all": 1, "barrier": 1, "send": 1, "recv": 1,
        }  # fmt: skip
        ring = 64 * (n - 1) / n
        assert by_kind == {
            "all_reduce": 2 * ring, "all_gather": 2 * n * ring, "reduce_scatter": ring, "broadcast": ring,
            "reduce": ring, "all_to_all": ring, "barrier": 0, "send": 64, "recv": 0,
        }  # fmt: skip
        assert found["group"][1] == (traffic.all_reduce_bytes(64, 2) if rank < 2 else 0)
        assert found["ddp"][0] == {"all_reduce": 1}
        assert found["ddp"][1] == traffic.data_parallel_bytes(P, n, 8)
        assert found["sharded"][0] == {"all_gather": 6, "reduce_scatter": 3}
        assert found["sharded"][1] == traffic.sharded_bytes(P, n, 8)
        assert found["partly"][1] == traffic.sharded_bytes(P, n, 8, kept=kept)
        assert found["tensor"][0] == {"all_reduce": 2}
        assert found["tensor"][1] == traffic.tensor_parallel_bytes(2 * 8 * 16, 1, n, 8)
        assert found["redistributed"][1] == traffic.all_gather_bytes(8 * 4 * 4, n)
        assert found["inside an operation"][1] == traffic.all_reduce_bytes(4 * 4, n)


VOCABULARY = (None, "gathered", "divided")


def _tensor_parallel_gpts():
    """For each way to divide a GPT: our count, and PyTorch's own by module, way and kind of call."""
    from contextlib import nullcontext

    from torch.distributed.tensor.debug import CommDebugMode
    from torch.distributed.tensor.parallel import loss_parallel

    found = {}
    for tied in (True, False):
        for vocabulary in VOCABULARY:
            model = tensor_parallel(small_gpt(tied=tied), vocabulary=vocabulary)
            for block in model.transformer.blocks:  # which calls it twice; PyTorch's mode loses its way then
                del block.dropout
                block.dropout = lambda x: x  # its probability is 0
            parts = loss_parallel() if vocabulary == "divided" else nullcontext()
            with parts, CommDebugMode() as theirs, traffic.Traffic() as ours:
                language_loss(model, some_rows()).backward()
            by_module = {
                module: {
                    way: {str(call).rpartition(".")[2]: times for call, times in calls.items()}
                    for way, calls in ways.items()
                }
                for module, ways in theirs.comm_module_counts.items()
            }
            found[tied, vocabulary] = ours.calls(), ours.sent, theirs.get_total_counts(), by_module
    return found


@pytest.mark.parametrize("n", [2, 4])
def test_pytorchs_count_of_calls_in_a_tensor_parallel_gpt_is_ours_and_the_formulas(n):
    T, D, V, blocks = 8 * 8, 16, 32, 2
    for found in launch(_tensor_parallel_gpts, n):
        for (_, vocabulary), (calls, sent, total, by_module) in found.items():
            assert total == sum(calls.values())
            sums = 2 * blocks  # each way: one for a sublayer
            forward, backward, size = {"all_reduce": sums}, {"all_reduce": sums}, 0
            if vocabulary is not None:
                backward = {"all_reduce": sums + 1}
                # of T D numbers after the embedding and before the head, and of the loss's, in float64
                size = 2 * traffic.all_reduce_bytes(T * D * 8, n)
                size += traffic.all_gather_bytes(T * V * 8, n) if vocabulary == "gathered" else 0
                size += 3 * traffic.all_reduce_bytes(T * 8, n) if vocabulary == "divided" else 0
            if vocabulary == "gathered":
                forward = {"all_reduce": sums + 1, "all_gather_into_tensor": 1}
            if vocabulary == "divided":
                forward = {"all_reduce": sums + 1 + 3}
            assert by_module["Global"] == {"forward": forward, "backward": backward}
            assert by_module["GPT.transformer.blocks.0.mlp"]["forward"] == {"all_reduce": 1}
            assert sent == traffic.tensor_parallel_bytes(T * D, 2 * blocks, n, 8) + size


class _First(nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.embed, self.positions, self.block = gpt.embed, gpt.positions, gpt.transformer.blocks[0]

    def forward(self, tokens):
        return self.block(self.positions(self.embed(tokens)), mask=causal_mask(tokens.shape[1]))


class _Second(nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.block, self.norm, self.head = gpt.transformer.blocks[1], gpt.transformer.final_norm, gpt.head

    def forward(self, x):
        return self.head(self.norm(self.block(x, mask=causal_mask(x.shape[1]))))


def _loss(logits, targets):
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


def _pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    def spy(stage, letter, method, seen):
        carried_out = getattr(stage, method)

        def spied(i, *args, **options):
            seen.append((letter, i))
            return carried_out(i, *args, **options)

        setattr(stage, method, spied)

    rank, rows, found = dist.get_rank(), some_rows(), {}
    for name, kind in (("gpipe", ScheduleGPipe), ("1f1b", Schedule1F1B)):
        gpt, seen = small_gpt(tied=False), []
        part = (_First, _Second)[rank](gpt)
        stage = PipelineStage(part, rank, 2, torch.device("cpu"))
        spy(stage, "F", "forward_one_chunk", seen)
        spy(stage, "B", "backward_one_chunk", seen)
        schedule = kind(stage, n_microbatches=4, loss_fn=_loss)
        for _ in range(2):  # before the first step the stages tell each other their shapes
            seen.clear()
            part.zero_grad()
            with traffic.Traffic() as sent:
                if rank == 0:
                    schedule.step(rows[:, :-1])
                else:
                    schedule.step(target=rows[:, 1:])
        gradients = {name: p.grad for name, p in gpt.named_parameters() if p.grad is not None}
        found[name] = list(seen), sent.calls(), sent.sent, gradients
    return found


def test_a_pipeline_sends_what_the_formula_says_and_keeps_its_order():
    gpt = small_gpt(tied=False)
    rows = some_rows()
    _loss(gpt(rows[:, :-1]), rows[:, 1:]).backward()
    results = launch(_pipeline, 2)
    for name in ("gpipe", "1f1b"):
        gradients = {}
        for rank, result in enumerate(results):
            order, calls, sent, part = result[name]
            assert order == pipeline_order(name, 2, 4)[rank]
            assert calls == {"send": 4, "recv": 4}
            assert sent == traffic.pipeline_bytes(8 * 8 * 16, rank, 2, 8)
            assert not gradients.keys() & part.keys()
            gradients |= part
        for key, p in gpt.named_parameters():
            torch.testing.assert_close(gradients[key], p.grad, rtol=0, atol=1e-12)


def test_outside_the_block_nothing_is_counted():
    with traffic.Traffic() as seen:
        mse_loss(torch.ones(2, requires_grad=True), torch.zeros(2)).backward()
    assert seen.messages == []
    assert (seen.sent, seen.calls()) == (0, {})

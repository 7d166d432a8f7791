"""Training runs that others have published, with what their authors say they took."""

from dataclasses import dataclass

from tformer_book.kit.published import PUBLISHED, llama_config
from tformer_book.scale.costs import GPTShape, step_flops, training_days

A100, H100, V100 = 312e12, 989e12, 125e12  # dense operations a second in 16 bits, of the makers' data sheets
BORROWED = "that of the 405B model, which this one did not reach"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training: what was trained, on how much, on what, and what its authors say it took."""

    name: str
    shape: GPTShape
    tokens: int | float
    length: int  # of a sequence
    rate: int | float  # of one GPU, operations a second
    memory: int | float  # of one GPU, bytes
    utilisation: int | float  # the share of the rate that is assumed to be reached, recomputation left out
    assumed: str  # where this share comes from
    source: str
    gpus: int = 1024  # where the source does not say, our choice: hours do not depend on it
    flops: int | float | None = None  # published
    gpu_hours: int | float | None = None  # published

    def predicted_flops(self) -> float:
        """Those of all products of matrices, attention's among them."""
        return self.tokens / self.length * step_flops(self.shape, 1, self.length)

    def predicted_gpu_hours(self) -> float:
        """The operations over rate and utilisation."""
        return 24 * training_days(self.predicted_flops(), 1, self.rate, self.utilisation)

    def error(self) -> float:
        """predicted / published - 1, of the hours where they are published, else of the operations."""
        if self.gpu_hours is not None:
            return self.predicted_gpu_hours() / self.gpu_hours - 1
        assert self.flops is not None
        return self.predicted_flops() / self.flops - 1


def _llama_2(
    name: str, *sizes: int, gpu_hours: int, gpus: int = 1024, source: str = "model card of Llama 2"
) -> Run:
    shape = GPTShape(config=llama_config(*sizes), vocab_size=32000, tied=False)
    return Run(
        name=name,
        shape=shape,
        tokens=2e12,
        length=4096,
        rate=A100,
        memory=80e9,
        utilisation=0.45,
        assumed="chosen so that the 7B model comes out, and kept for the 13B, 34B and 70B models",
        source=source,
        gpus=gpus,
        gpu_hours=gpu_hours,
    )


def _llama_3(
    name: str, *sizes: int, tokens: float, gpu_hours: float, assumed: str = BORROWED, gpus: int = 1024
) -> Run:
    shape = GPTShape(config=llama_config(*sizes), vocab_size=128256, tied=False)
    return Run(
        name=name,
        shape=shape,
        tokens=tokens,
        length=8192,
        rate=H100,
        memory=80e9,
        utilisation=0.40,
        assumed=assumed,
        source="model card of Llama 3.1; Grattafiori et al. 2024, section 3",
        gpus=gpus,
        gpu_hours=gpu_hours,
    )


RUNS: dict[str, Run] = {
    run.name: run
    for run in (
        Run(
            name="GPT-3 175B",
            shape=GPTShape(config=PUBLISHED["GPT-3 175B"].config, vocab_size=50257, places=2048),
            tokens=300e9,
            length=2048,
            rate=V100,
            memory=32e9,
            utilisation=0.2,
            assumed="not published; a guess that enters the days alone",
            source="Brown et al. 2020, appendix D",
            flops=3.14e23,
        ),
        _llama_2("Llama 2 7B", 32, 4096, 32, 32, 11008, gpu_hours=184_320, gpus=8),
        _llama_2("Llama 2 13B", 40, 5120, 40, 40, 13824, gpu_hours=368_640),
        _llama_2(
            "Llama 2 34B",
            *(48, 8192, 64, 8, 22016),
            gpu_hours=1_038_336,
            source="Touvron et al. 2023, table of emissions; sizes of Code Llama 34B (Rozière et al. 2023)",
        ),
        _llama_2("Llama 2 70B", 80, 8192, 64, 8, 28672, gpu_hours=1_720_320),
        _llama_3(
            "Llama 3.1 405B",
            *(126, 16384, 128, 8, 53248),
            tokens=15.6e12,
            gpu_hours=30.84e6,
            assumed="the report gives 38 to 43% for the 405B model",
            gpus=16384,
        ),
        _llama_3("Llama 3.1 70B", 80, 8192, 64, 8, 28672, tokens=15e12, gpu_hours=7.0e6),
        _llama_3("Llama 3.1 8B", 32, 4096, 32, 8, 14336, tokens=15e12, gpu_hours=1.46e6),
    )
}

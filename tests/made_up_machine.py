"""Facts of a machine and of models that are not there. Names hold markup and escape codes, as foreign text may."""

from __future__ import annotations

from localspec.engine.values import BuildInfo, DeviceInfo, ModelInfo

BUILD = BuildInfo(
    llama_cpp_python="0.3.36",
    llama_cpp="b1",
    system_info="CPU : AVX2 = 1 | [bold]FMA = 1 |",
    supports_gpu_offload=False,
    supports_mmap=True,
)
DEVICE = DeviceInfo("CPU", "Processor [/] \x1b[31m", "cpu", "CPU", 4_000_000_000, 8_000_000_000)


def model_info(path: str) -> ModelInfo:
    """Return what a made-up model says of itself."""
    return ModelInfo(
        path=path,
        name="Tiny [/b]",
        architecture="llama",
        description="tiny",
        quantisation="F16",
        num_params=10,
        size_bytes=20,
        n_vocab=320,
        n_ctx=256,
        n_ctx_train=256,
        n_threads=2,
        n_threads_batch=2,
        n_gpu_layers=0,
        type_k="f16",
        type_v="f16",
        flash_attn=True,
        can_roll_back=True,
        template="file",
    )

"""Write the command of a training for one process or many, so that the effective batch size stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal

from .machine import ASK_GPUS, answer
from .recipe import Settings, about
from .values import Flags, Refused

LEAST = "the least number"  # key of a field's metadata


def at_least(least: int, text: str, **options: Any) -> Any:
    """Return a dataclass field for an integer that must be at least `least`."""
    return field(metadata={**about(text), LEAST: least}, **options)


@dataclass(kw_only=True)
class Training(Settings):
    """Hold the settings of a recipe that can train with several processes."""

    launch: Literal["local", "torchrun", "slurm"] = field(
        default="local", metadata=about("What starts the processes of a training.")
    )
    device: Literal["auto", "cpu", "gpu"] = field(
        default="auto", metadata=about("Device to train on; auto takes GPUs if nvidia-smi finds any.")
    )
    processes: int = at_least(1, "Number of processes per node (on GPUs: one per GPU).", default=1)
    nodes: int = at_least(
        1, "Number of nodes. With torchrun, start the training command on the other nodes yourself.", default=1
    )
    rendezvous: str = field(default="", metadata=about("HOST:PORT of the first node, for torchrun with several nodes."))
    precision: Literal["fp32", "fp16", "bf16", "amp"] = field(
        default="fp32", metadata=about("Floating-point format of training.")
    )
    batches: int = at_least(1, "Number of batches per update, over all processes together.", default=1)
    threads: int = at_least(0, "Number of threads of each command (0: all cores).", default=0)
    train: Flags = field(default_factory=dict, metadata=about("A flag of fairseq-train."))

    batch_flag: ClassVar[str] = "max-tokens"  # the flag of fairseq-train that sets the batch size

    def __post_init__(self) -> None:
        for one in fields(self):
            least, number = one.metadata.get(LEAST), getattr(self, one.name)
            if least is not None and number < least:
                raise Refused(f"--{one.name.replace('_', '-')} is {number}: {least} or more is wanted")
        if self.rendezvous and (self.launch != "torchrun" or self.nodes == 1):
            raise Refused("--rendezvous is for --launch torchrun on several --nodes: leave it out")

    def number(self, flag: str, unless: int) -> int:
        """Return the value of an integer flag of fairseq-train, or `unless` if the flag is not given.

        Raises:
            Refused: The value is not an integer.
        """
        value = self.train.get(flag, unless)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Refused(f"--train.{flag} is {value!r}: a whole number is wanted")
        return value

    @property
    def on_gpu(self) -> bool:
        """Return whether GPUs are used. With `auto` that needs a GPU on this machine, except for Slurm jobs."""
        if self.device == "auto":
            return self.launch == "slurm" or bool(gpus())
        return self.device == "gpu"

    def variables(self) -> dict[str, str]:
        """Return environment variables for every command."""
        return {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")} if self.threads else {}

    def slots(self) -> list[Mapping[str, str]]:
        """Return environment variables for each of the commands that run in parallel, which divide the GPUs."""
        here = gpus() if self.on_gpu and self.launch != "slurm" and self.jobs > 1 else ()
        if not here:
            return [{} for _ in range(self.jobs)]
        if self.jobs * self.processes > len(here):
            raise Refused(f"--jobs {self.jobs} x --processes {self.processes} need as many GPUs, {len(here)} are here")
        groups = [range(job * self.processes, (job + 1) * self.processes) for job in range(self.jobs)]
        return [{"CUDA_VISIBLE_DEVICES": ",".join(map(str, group))} for group in groups]


@cache
def gpus() -> tuple[str, ...]:
    return tuple(answer(ASK_GPUS).splitlines())


# Flags that train_command writes or that later stages rely on, and the setting that controls each of them.
DECIDED = {
    "update-freq": "--batches",
    "cpu": "--device",
    **dict.fromkeys(("fp16", "bf16", "amp"), "--precision"),
    **dict.fromkeys(("no-save", "no-last-checkpoints", "checkpoint-suffix"), "the stages that read its checkpoints"),
    **{f"distributed-{name}": "--launch" for name in ("world-size", "port", "backend", "rank", "init-method")},
}


def refuse_decided(flags: Iterable[str], decided: Mapping[str, str] = DECIDED, table: str = "train") -> None:
    """Refuse flags that a recipe writes itself, because fairseq silently takes the last of two equal flags."""
    for flag in flags:
        if flag in decided:
            raise Refused(f"--{table}.{flag} is decided by {decided[flag]}: use that")


def identity(flags: list[str], how: Training) -> tuple[str, ...]:
    """Return the words that decide the result of a training, without the number of processes and the launcher."""
    return ("fairseq-train", *flags, "--precision", how.precision, "--batches", str(how.batches))


def train_command(flags: list[str], how: Training) -> tuple[str, ...]:
    """Return the command of a training.

    Args:
        flags: Flags of fairseq-train, without those about processes, devices, precision and --update-freq.
        how: Settings of the training.
    """
    flags = [*flags, "--update-freq", str(update_freq(how)), *device_flags(how), *precision_flags(how)]
    launchers = {"local": local, "torchrun": torchrun, "slurm": slurm}
    return tuple(launchers[how.launch](flags, how))


def notes(how: Training, batch: str) -> list[str]:
    """Return what a user should know about the training before it runs.

    Args:
        how: Settings of the training.
        batch: A sentence about the size of an update; empty if the size is not known.
    """
    told = [batch] if batch else []
    if how.launch == "torchrun" and how.nodes > 1:
        told.append("Start each training's torchrun command on the other nodes too: --dry-run --stage train prints it.")
    used = how.jobs * how.processes
    if how.on_gpu and how.launch != "slurm" and used < len(gpus()):
        told.append(f"{used} of the {len(gpus())} GPUs here are used: --processes, --jobs.")
    return told


def update_freq(how: Training) -> int:
    together = how.nodes * how.processes
    if how.batches % together:
        good = [number for number in range(1, how.batches + 1) if how.batches % number == 0]
        raise Refused(
            f"--batches {how.batches} cannot be shared by {how.nodes} x {how.processes} processes: take "
            f"{', '.join(map(str, good))} of them, or --batches {together} and --train.{how.batch_flag} times "
            f"{how.batches}/{together}, which keeps the size of an update"
        )
    return how.batches // together


def effective_batch(how: Training, max_tokens: int) -> str:
    return (
        f"An update: nodes {how.nodes} x processes {how.processes} x update-freq {update_freq(how)} x max-tokens "
        f"{max_tokens:,} = {how.batches * max_tokens:,} tokens at most"
    )


def device_flags(how: Training) -> list[str]:
    if how.on_gpu:
        return []
    # The default backend of fairseq and its default DDP wrapper need a GPU.
    several = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    return ["--cpu", *(several if how.nodes * how.processes > 1 else [])]


def precision_flags(how: Training) -> list[str]:
    """Return the flags of the precision.

    fairseq takes --bf16 to mean a TPU; fairseq_posenc/compat/command_line.py corrects that.
    """
    if how.precision == "fp32":
        return []
    if how.on_gpu:
        return [f"--{how.precision}"]
    if how.precision == "amp":
        raise Refused("--precision amp needs a GPU: take bf16, or --device gpu")
    return [f"--{how.precision}", "--fp16-no-flatten-grads"]  # fairseq flattens gradients with CUDA calls


def local(flags: list[str], how: Training) -> list[str]:
    """Return fairseq-train for one process, torchrun for several: fairseq alone would look for Slurm's variables."""
    if how.nodes > 1:
        raise Refused("--launch local is one machine: for --nodes take --launch torchrun or slurm")
    if how.processes > 1:
        return torchrun(flags, how)
    # Without --distributed-world-size fairseq uses every visible GPU.
    return ["fairseq-train", *flags, "--distributed-world-size", "1"]


def torchrun(flags: list[str], how: Training) -> list[str]:
    """Return a torchrun command that starts our worker, because fairseq-train would start independent trainings."""
    if how.nodes > 1 and not how.rendezvous:
        raise Refused("--launch torchrun on several --nodes needs --rendezvous HOST:PORT, the first node's")
    meet = ["--standalone"]
    if how.nodes > 1:
        meet = ["--rdzv-backend", "c10d", "--rdzv-id", "posenc", "--rdzv-endpoint", how.rendezvous]
    size = ["--nnodes", str(how.nodes), "--nproc-per-node", str(how.processes)]
    return ["torchrun", *size, *meet, "-m", "recipes.lib.worker", *flags]


def slurm(flags: list[str], how: Training) -> list[str]:
    """Return an srun command that starts our worker. fairseq-train counts GPUs if there is one task per node."""
    if not how.on_gpu:
        raise Refused("--launch slurm trains on GPUs: on CPUs take --launch torchrun")
    each = str(how.processes)
    srun = ["srun", "--nodes", str(how.nodes), "--ntasks-per-node", each, "--gpus-per-node", each]
    return [*srun, "python", "-m", "recipes.lib.worker", *flags]


def on_one_device(command: list[str], how: Training) -> tuple[str, ...]:
    """Return a command that uses at most one GPU, such as a translation. With --launch slurm it runs through srun."""
    srun = ["srun", "--nodes", "1", "--ntasks", "1", "--gpus", "1"] if how.launch == "slurm" else []
    return (*srun, *command, *([] if how.on_gpu else ["--cpu"]))

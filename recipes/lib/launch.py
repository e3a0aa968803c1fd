"""Build the command of a training run so that the effective batch size does not depend on the number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal

from .machine import ASK_GPUS, answer
from .recipe import Settings, about
from .values import Flags, Refused

LEAST = "smallest allowed value"  # key of a field's metadata


def at_least(least: int, text: str, **options: Any) -> Any:
    """Return a dataclass field for an integer that must be at least `least`."""
    return field(metadata={**about(text), LEAST: least}, **options)


@dataclass(kw_only=True)
class Training(Settings):
    """Hold the settings of a recipe that can train with several processes."""

    launch: Literal["local", "torchrun", "slurm"] = field(
        default="local", metadata=about("Launcher that starts the processes of a training run.")
    )
    device: Literal["auto", "cpu", "gpu"] = field(
        default="auto", metadata=about("Device to train on; auto uses GPUs with Slurm, or if nvidia-smi finds any.")
    )
    processes: int = at_least(1, "Number of processes per node (on GPUs: one per GPU).", default=1)
    nodes: int = at_least(
        1, "Number of nodes. With torchrun, start the training command on the other nodes yourself.", default=1
    )
    rendezvous: str = field(default="", metadata=about("Address of the first node, for torchrun on several nodes."))
    precision: Literal["fp32", "fp16", "bf16", "amp"] = field(
        default="fp32", metadata=about("Floating-point format of training.")
    )
    batches: int = at_least(1, "Number of batches per update, summed over all processes.", default=1)
    threads: int = at_least(0, "Number of threads of each command (0: all cores).", default=0)
    train: Flags = field(default_factory=dict, metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))

    batch_option: ClassVar[str] = "--train.max-tokens"  # the option that sets the batch size

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in fields(self):
            least, number = setting.metadata.get(LEAST), getattr(self, setting.name)
            if least is not None and number < least:
                raise Refused(f"--{setting.name.replace('_', '-')} {number}: the value must be at least {least}.")
        if self.rendezvous and (self.launch != "torchrun" or self.nodes == 1):
            problem = "only --launch torchrun with --nodes 2 or more needs this option"
            raise Refused(f"--rendezvous {self.rendezvous}: {problem}. Leave this option out.")

    def number(self, flag: str, unless: int) -> int:
        """Return the value of an integer flag of fairseq-train, or `unless` if the flag is not set.

        Raises:
            Refused: The value is not an integer.
        """
        value = self.train.get(flag, unless)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Refused(f"--train.{flag} {value}: the value must be a whole number.")
        return value

    @property
    def on_gpu(self) -> bool:
        """Return whether GPUs are used. `--device auto` uses GPUs in Slurm jobs and on machines with a GPU."""
        if self.device == "auto":
            return self.launch == "slurm" or bool(gpus())
        return self.device == "gpu"

    def variables(self) -> dict[str, str]:
        """Return the environment variables that every command receives."""
        return {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")} if self.threads else {}

    def slots(self) -> list[Mapping[str, str]]:
        """Return environment variables that divide the GPUs among the parallel commands."""
        devices = gpus() if self.on_gpu and self.launch != "slurm" and self.jobs > 1 else ()
        if not devices:
            return [{} for _ in range(self.jobs)]
        if (needed := self.jobs * self.processes) > len(devices):
            problem = f"parallel training runs need {needed} GPUs, but this machine has {len(devices)}"
            raise Refused(f"--jobs {self.jobs} --processes {self.processes}: {problem}. Reduce --jobs or --processes.")
        groups = [range(job * self.processes, (job + 1) * self.processes) for job in range(self.jobs)]
        return [{"CUDA_VISIBLE_DEVICES": ",".join(map(str, group))} for group in groups]


@cache
def gpus() -> tuple[str, ...]:
    """Return the names of the GPUs of this machine."""
    return tuple(answer(ASK_GPUS).splitlines())


# Flags that train_command writes or that later stages rely on, with the option to use instead, or the value or reason.
DECIDED = {
    "update-freq": "--batches",
    "cpu": "--device",
    **dict.fromkeys(("fp16", "bf16", "amp"), "--precision"),
    **dict.fromkeys(("no-save", "no-last-checkpoints", "checkpoint-suffix"), "later stages read the checkpoints"),
    **{f"distributed-{name}": "--launch" for name in ("world-size", "port", "backend", "rank", "init-method")},
}


def refuse_decided(flags: Iterable[str], decided: Mapping[str, str] = DECIDED, table: str = "train") -> None:
    """Refuse flags that a recipe writes itself, because fairseq silently uses the last of two equal flags."""
    for flag in flags:
        if flag in decided:
            by = decided[flag]
            advice = f". Instead use {by}." if by.startswith("--") else f" ({by}). Leave this flag out."
            raise Refused(f"--{table}.{flag}: the recipe sets this flag itself{advice}")


def identity(flags: list[str], settings: Training) -> tuple[str, ...]:
    """Return the words that determine the result of training: flags, precision and --batches, but not --processes."""
    return ("fairseq-train", *flags, "--precision", settings.precision, "--batches", str(settings.batches))


def train_command(flags: list[str], settings: Training) -> tuple[str, ...]:
    """Return the command of a training run.

    Args:
        flags: Flags of fairseq-train, except flags for processes, devices, precision and --update-freq.
        settings: Settings of the recipe, which choose the launcher, the devices and the precision.
    """
    flags = [*flags, "--update-freq", str(update_freq(settings)), *device_flags(settings), *precision_flags(settings)]
    launchers = {"local": local, "torchrun": torchrun, "slurm": slurm}
    return tuple(launchers[settings.launch](flags, settings))


def notes(settings: Training, batch: str) -> list[str]:
    """Return notes for the user to read before the training begins.

    Args:
        settings: Settings of the recipe, which choose the launcher and the devices.
        batch: A sentence about the size of an update, which becomes a note; empty if the size is not known.
    """
    lines = [batch] if batch else []
    if settings.launch == "torchrun" and settings.nodes > 1:
        lines.append(
            "Start each training command on the other nodes, too; --dry-run --stage train prints the commands."
        )
    used = settings.jobs * settings.processes
    if settings.on_gpu and settings.launch != "slurm" and used < len(gpus()):
        lines.append(f"Only {used} of the {len(gpus())} GPUs are used. To use more GPUs, raise --processes or --jobs.")
    return lines


def update_freq(settings: Training) -> int:
    """Return fairseq's --update-freq: the number of batches whose gradients each process adds up for an update."""
    processes = settings.nodes * settings.processes
    if settings.batches % processes:
        divisors = [number for number in range(1, settings.batches + 1) if settings.batches % number == 0]
        raise Refused(
            f"--batches {settings.batches}: {processes} processes cannot share {settings.batches} batches equally. "
            f"Use {', '.join(map(str, divisors))} processes in total, or give --batches {processes}. To keep the size "
            f"of an update with --batches {processes}, multiply {settings.batch_option} by "
            f"{settings.batches}/{processes}."
        )
    return settings.batches // processes


def effective_batch(settings: Training, max_tokens: int) -> str:
    """Return a sentence about the number of tokens in an update."""
    total = f"at most {settings.batches * max_tokens:,}"
    if not (numbers := factors(settings)):
        return f"Tokens per update: {total} (--train.max-tokens)"
    return f"Tokens per update: {' x '.join([*numbers, f'--train.max-tokens {max_tokens:,}'])} = {total} tokens"


def factors(settings: Training) -> list[str]:
    """Return the factors of the number of batches in an update, such as `8 processes`, except factors of 1."""
    per_node = "processes per node" if settings.nodes > 1 else "processes"
    freq = update_freq(settings)
    words = {f"{settings.nodes} nodes": settings.nodes, f"{settings.processes} {per_node}": settings.processes}
    return [text for text, number in {**words, f"--update-freq {freq}": freq}.items() if number > 1]


def device_flags(settings: Training) -> list[str]:
    """Return the flags of fairseq-train that choose the device."""
    if settings.on_gpu:
        return []
    # The default backend of fairseq and its default DDP wrapper need a GPU, even if worker.py is the only process.
    worker = settings.launch != "local" or settings.processes > 1
    return ["--cpu", *(["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"] if worker else [])]


def precision_flags(settings: Training) -> list[str]:
    """Return the flags of fairseq-train that set the precision.

    fairseq itself takes --bf16 for --tpu; fairseq_posenc/compat/command_line.py prevents this on GPUs and CPUs.
    """
    if settings.precision == "fp32":
        return []
    if settings.on_gpu:
        return [f"--{settings.precision}"]
    if settings.precision == "amp":
        raise Refused("--precision amp: this precision needs a GPU. Give --precision bf16 or --device gpu.")
    return [f"--{settings.precision}", "--fp16-no-flatten-grads"]  # fairseq flattens gradients with CUDA calls


def local(flags: list[str], settings: Training) -> list[str]:
    """Return a command for this machine: fairseq-train for one process, or torchrun for several processes.

    Without torchrun, fairseq would look for the variables of a Slurm job.
    """
    if settings.nodes > 1:
        raise Refused(
            f"--nodes {settings.nodes}: --launch local uses one machine only. Give --launch torchrun or slurm."
        )
    if settings.processes > 1:
        return torchrun(flags, settings)
    # Without --distributed-world-size fairseq uses every visible GPU.
    return ["fairseq-train", *flags, "--distributed-world-size", "1"]


def torchrun(flags: list[str], settings: Training) -> list[str]:
    """Return a command that starts worker.py in each process; fairseq-train itself would start independent runs.

    The command is that of `torchrun`, which .venv/bin lacks if the torch of another Python is linked into .venv.
    """
    if settings.nodes > 1 and not settings.rendezvous:
        raise Refused(
            f"--nodes {settings.nodes}: torchrun needs the first node's address. Give --rendezvous HOST:PORT."
        )
    meet = ["--standalone"]
    if settings.nodes > 1:
        meet = ["--rdzv-backend", "c10d", "--rdzv-id", "posenc", "--rdzv-endpoint", settings.rendezvous]
    size = ["--nnodes", str(settings.nodes), "--nproc-per-node", str(settings.processes)]
    return ["python", "-m", "torch.distributed.run", *size, *meet, "-m", "recipes.lib.worker", *flags]


def slurm(flags: list[str], settings: Training) -> list[str]:
    """Return an srun command that starts worker.py; fairseq-train itself might start further processes."""
    processes = str(settings.processes)
    gpus = ["--gpus-per-node", processes] if settings.on_gpu else []
    srun = ["srun", "--nodes", str(settings.nodes), "--ntasks-per-node", processes, *gpus, *cores(settings)]
    return [*srun, "python", "-m", "recipes.lib.worker", *flags]


def cores(settings: Training) -> list[str]:
    """Return srun's option for the number of cores of a task; srun's default is one core."""
    return ["--cpus-per-task", str(settings.threads)] if settings.threads else []


def on_one_device(command: list[str], settings: Training) -> tuple[str, ...]:
    """Return a command that uses at most one GPU, such as a translation. With --launch slurm, srun runs the command."""
    gpus = ["--gpus", "1"] if settings.on_gpu else []
    srun = ["srun", "--nodes", "1", "--ntasks", "1", *gpus, *cores(settings)] if settings.launch == "slurm" else []
    return (*srun, *command, *([] if settings.on_gpu else ["--cpu"]))

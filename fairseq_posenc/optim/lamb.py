"""`--optimizer posenc_lamb`: LAMB (You et al. 2020), which large batches of masked LMs train with.

fairseq's own `lamb` is NVIDIA apex's, and needs a GPU and apex. This is that of the package pytorch_optimizer, in the
form of the authors' code for BERT: without bias correction, weight decay inside of the trust ratio, the norm of a
weight counted up to 10.
"""

# no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, List

from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II, OmegaConf
from torch import nn


@dataclass
class PosEncLambConfig(FairseqDataclass):
    """Options of LAMB."""

    lamb_betas: str = field(default="(0.9, 0.999)", metadata={"help": "decay of the moments of gradients"})
    lamb_eps: float = field(default=1e-6, metadata={"help": "what is added to the root of the second moment"})
    weight_decay: float = field(default=0.01, metadata={"help": "the authors' 0.01"})
    lr: List[float] = II("optimization.lr")


@register_optimizer("posenc_lamb", dataclass=PosEncLambConfig)
class PosEncLamb(FairseqOptimizer):
    """x <- x - lr min(|x|, 10) / |r| r, with r = m / (sqrt(v) + eps) + decay x, a tensor at a time."""

    def __init__(self, cfg: PosEncLambConfig, params: Iterable[nn.Parameter]) -> None:
        super().__init__(cfg)
        try:
            from pytorch_optimizer import Lamb
        except ModuleNotFoundError:
            text = "--optimizer posenc_lamb needs the package pytorch_optimizer: pip install pytorch_optimizer"
            raise ValueError(text) from None
        # adam_debias: the step is not divided by 1 - beta_1^t, which the package does otherwise
        form: dict[str, Any] = {"weight_decouple": False, "grad_averaging": True, "pre_norm": False, "adam_debias": True}
        self._optimizer = Lamb(params, **form, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """What a resumed training takes from its own command line."""
        lr = OmegaConf.to_container(self.cfg.lr) if OmegaConf.is_config(self.cfg.lr) else self.cfg.lr
        first, second = (float(part) for part in self.cfg.lamb_betas.strip("() ").split(","))
        return {
            "lr": lr[0] if isinstance(lr, list) else lr,
            "betas": (first, second),
            "eps": self.cfg.lamb_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        """No: the trust ratio is one of a tensor. --fp16 needs --fp16-no-flatten-grads, and is told so by fairseq."""
        return False

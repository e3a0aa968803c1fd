"""`--optimizer posenc_lamb`: LAMB (You et al. 2020), which large batches of masked LMs train with.

fairseq's own `lamb` is NVIDIA apex's, and needs a GPU and apex. This is that of the package pytorch_optimizer, in the
form of Google's code for BERT and ALBERT: without bias correction, weight decay inside of the trust ratio, norms of
weights as they are; biases and layer norms (all vectors) neither decay nor have a trust ratio.
"""

import math  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, List

from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II, OmegaConf
from torch import nn

from ..core.options import option


@dataclass
class PosEncLambConfig(FairseqDataclass):
    """Options of LAMB."""

    lamb_betas: str = option("(0.9, 0.999)", "Decay rates of the moments of gradients.")
    lamb_eps: float = option(1e-6, "Term added to the root of the second moment.")
    weight_decay: float = option(0.01, "Weight decay. The authors use the default.")
    lr: List[float] = II("optimization.lr")


@register_optimizer("posenc_lamb", dataclass=PosEncLambConfig)
class PosEncLamb(FairseqOptimizer):
    """x <- x - lr |x| / |r| r, with r = m / (sqrt(v) + eps) + decay x, a tensor at a time; a vector x <- x - lr r."""

    def __init__(self, cfg: PosEncLambConfig, params: Iterable[nn.Parameter]) -> None:
        super().__init__(cfg)
        params = list(params)
        try:
            from pytorch_optimizer import Lamb
        except ModuleNotFoundError:
            text = "--optimizer posenc_lamb needs the package pytorch_optimizer: pip install pytorch_optimizer"
            raise ValueError(text) from None
        both = ([p for p in params if p.dim() > 1], [p for p in params if p.dim() < 2])
        # `adam`: without a trust ratio. adam_debias: the step is not divided by 1 - beta_1^t, as it is otherwise
        groups = [{"params": some, "adam": vectors} for some, vectors in zip(both, (False, True), strict=True) if some]
        form: dict[str, Any] = {
            "weight_decouple": False,
            "grad_averaging": True,
            "pre_norm": False,
            "adam_debias": True,
        }
        self._optimizer = Lamb(groups, **form, **self.optimizer_config)
        self._optimizer.clamp = math.inf  # the package counts norms up to 10, which Google's code does not
        self._spare_vectors()

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        """Load as fairseq does, which gives all groups the same weight decay."""
        super().load_state_dict(state_dict, optimizer_overrides)
        self._spare_vectors()

    def _spare_vectors(self) -> None:
        for group in self._optimizer.param_groups:
            group["weight_decay"] = 0.0 if group["adam"] else self.cfg.weight_decay

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """Return what a resumed training takes from its own command line."""
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
        """Return False: each tensor has a trust ratio. fairseq asks --fp16 for --fp16-no-flatten-grads."""
        return False

"""Implement `--optimizer posenc_lamb`: LAMB (You et al. 2020), which trains masked LMs with large batches.

fairseq's own `lamb` needs a GPU and NVIDIA apex. This optimizer uses the class Lamb of the package pytorch_optimizer,
with settings that match Google's code for BERT and ALBERT. The optimizer does no bias correction, includes weight decay
in the trust ratio, and does not clamp norms of weights. Biases and layer norms (all vectors) have neither weight decay
nor a trust ratio.
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
from ..core.refusal import InputError


@dataclass
class PosEncLambConfig(FairseqDataclass):
    """Define the options of LAMB."""

    lamb_betas: str = option("(0.9, 0.999)", "Decay rates of the first and second moments of the gradients.")
    lamb_eps: float = option(1e-6, "Constant that is added to the square root of the second moment.")
    weight_decay: float = option(0.01, "Weight decay of matrices (the default is the value of You et al. 2020).")
    lr: List[float] = II("optimization.lr")


@register_optimizer("posenc_lamb", dataclass=PosEncLambConfig)
class PosEncLamb(FairseqOptimizer):
    """Update each matrix by x <- x - lr |x| / |r| r, and each vector by x <- x - lr r, as LAMB does.

    Here r = m / (sqrt(v) + eps) + decay x, where m and v are the moments and decay is 0 for vectors.
    """

    def __init__(self, cfg: PosEncLambConfig, params: Iterable[nn.Parameter]) -> None:
        super().__init__(cfg)
        params = list(params)
        try:
            from pytorch_optimizer import Lamb
        except ModuleNotFoundError:
            text = "--optimizer posenc_lamb needs a package. Run `pip install pytorch_optimizer`."
            raise InputError(text) from None
        both = ([p for p in params if p.dim() > 1], [p for p in params if p.dim() < 2])
        # `adam` switches the trust ratio off. `adam_debias` leaves out the division of the step by 1 - beta_1^t.
        groups = [{"params": part, "adam": vectors} for part, vectors in zip(both, (False, True), strict=True) if part]
        form: dict[str, Any] = {
            "weight_decouple": False,
            "grad_averaging": True,
            "pre_norm": False,
            "adam_debias": True,
        }
        self._optimizer = Lamb(groups, **form, **self.optimizer_config)
        self._optimizer.clamp = math.inf  # the package clamps norms of weights at 10, but Google's code does not
        self._spare_vectors()

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        """Load the state, then restore each group's weight decay, which fairseq has set to the same value."""
        super().load_state_dict(state_dict, optimizer_overrides)
        self._spare_vectors()

    def _spare_vectors(self) -> None:
        for group in self._optimizer.param_groups:
            group["weight_decay"] = 0.0 if group["adam"] else self.cfg.weight_decay

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """Return the settings that a resumed training run takes from its own command line instead of the checkpoint."""
        lr = OmegaConf.to_container(self.cfg.lr) if OmegaConf.is_config(self.cfg.lr) else self.cfg.lr
        beta1, beta2 = (float(part) for part in self.cfg.lamb_betas.strip("() ").split(","))
        return {
            "lr": lr[0] if isinstance(lr, list) else lr,
            "betas": (beta1, beta2),
            "eps": self.cfg.lamb_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        """Return False, because each tensor has its own trust ratio. --fp16 therefore needs --fp16-no-flatten-grads."""
        return False

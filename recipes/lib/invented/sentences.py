"""Write an invented parallel corpus whose translation needs word order.

English sentences in the past tense are translated into an invented language. Only the order of the English words says
who did what to whom. The invented language has these rules:

- The order is subject, object, verb. Nouns have no case, so the meaning changes if two nouns are swapped.
- Adjectives follow their noun and share its class ending, so a model must know which noun they belong to.
- A relative clause stands before its noun, and its verb agrees with the noun that acts in it.
- The last verb agrees with the class and number of the subject, which may be many words away. The English past tense
  shows neither class nor number.

Each word has exactly one translation. A model that sees only a bag of words therefore gets many words right, but must
guess which noun is the subject.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairseq_posenc.core.writing import whole_folder
from recipes.lib.lines import write as write_lines

# English nouns as (singular, plural). They are common words, so that the examples in the report read well.
# There are few of them: a short training learns them all, and only the order remains to be learned.
NOUNS = tuple(
    (singular, plural)
    for singular, plural in (
        pair.split("/")
        for pair in (
            "dog/dogs cat/cats bird/birds horse/horses teacher/teachers child/children farmer/farmers "
            "singer/singers doctor/doctors king/kings queen/queens baker/bakers sailor/sailors wolf/wolves "
            "fox/foxes girl/girls boy/boys judge/judges"
        ).split()
    )
)
VERBS = ("saw", "chased", "heard", "followed", "helped", "watched", "found", "called", "pushed", "praised")
ADJECTIVES = ("old", "young", "red", "small", "tall", "quiet", "happy", "brave")
ADVERBS = ("yesterday", "today", "often", "never")

ONSETS = "bdfgklmnprstvz"
VOWELS = "aeiou"
CODAS = "lmnrstk"
SINGULAR_ENDINGS = ("a", "o", "e")  # one ending per noun class, which English does not show
PLURAL_ENDINGS = ("ai", "oi", "ei")
CLASSES = len(SINGULAR_ENDINGS)


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class Noun:
    english: str
    stem: str
    ending: str


@dataclass(frozen=True)
class Phrase:
    """Hold a noun with its adjectives and its relative clause, if it has one."""

    noun: Noun
    adjectives: tuple[int, ...] = ()
    clause: Clause | None = None


@dataclass(frozen=True)
class Clause:
    """Hold a relative clause: `that saw the cat` (the head noun acts) or `that the cat saw` (the other noun acts)."""

    verb: int
    other: Phrase
    head_acts: bool


class Lexicon:
    """Hold the invented words. The words are the same for every seed, so that corpora can be compared."""

    def __init__(self, seed: int = 7) -> None:
        rng = random.Random(seed)
        stems = _stems(rng, len(NOUNS) + len(VERBS) + len(ADJECTIVES) + len(ADVERBS))
        self.nouns = [stems.pop() for _ in NOUNS]
        self.verbs = [stems.pop() for _ in VERBS]
        self.adjectives = [stems.pop() for _ in ADJECTIVES]
        self.adverbs = [stems.pop() + "u" for _ in ADVERBS]

    def noun(self, index: int, plural: bool) -> Noun:
        endings = PLURAL_ENDINGS if plural else SINGULAR_ENDINGS
        return Noun(NOUNS[index][plural], self.nouns[index], endings[index % CLASSES])


def _stems(rng: random.Random, count: int) -> list[str]:
    """Return distinct stems of two syllables, such as `balmer`."""
    stems: dict[str, None] = {}
    while len(stems) < count:
        stems["".join(rng.choice(part) for part in (ONSETS, VOWELS, ONSETS, VOWELS, CODAS))] = None
    return list(stems)


class Grammar:
    """Draw random sentences in both languages."""

    def __init__(self, rng: random.Random, lexicon: Lexicon) -> None:
        self.rng = rng
        self.words = lexicon

    def pair(self) -> Pair:
        return put(self.words, *self.parts())

    def parts(self) -> tuple[Phrase, int, Phrase, int | None]:
        """Draw the subject, verb, object and adverb of a sentence; some sentences have no adverb."""
        nouns = self.rng.sample(range(len(NOUNS)), 4)
        subject = self._phrase(nouns[:2], clause_odds=0.5)
        object_ = self._phrase(nouns[2:], clause_odds=0.2)
        verb = self.rng.randrange(len(VERBS))
        adverb = self.rng.randrange(len(ADVERBS)) if self.rng.random() < 0.3 else None
        return subject, verb, object_, adverb

    def _phrase(self, nouns: list[int], clause_odds: float) -> Phrase:
        noun = self.words.noun(nouns[0], plural=self.rng.random() < 0.5)
        count = self.rng.choices((0, 1, 2), weights=(4, 4, 2))[0]
        adjectives = tuple(self.rng.sample(range(len(ADJECTIVES)), count))
        clause = None
        if self.rng.random() < clause_odds:
            other = self._phrase(nouns[1:], clause_odds=0.0)
            clause = Clause(self.rng.randrange(len(VERBS)), other, head_acts=self.rng.random() < 0.5)
        return Phrase(noun, adjectives, clause)


def put(lexicon: Lexicon, subject: Phrase, verb: int, object_: Phrase, adverb: int | None) -> Pair:
    """Return the sentence in both languages."""
    english = [ADVERBS[adverb]] if adverb is not None else []
    english += [*_english_phrase(subject), VERBS[verb], *_english_phrase(object_)]
    invented = [*_invented_phrase(lexicon, subject), *_invented_phrase(lexicon, object_)]
    invented += [lexicon.adverbs[adverb]] if adverb is not None else []
    invented += [lexicon.verbs[verb] + "t" + subject.noun.ending]
    return Pair(_sentence(english), _sentence(invented))


def _invented_phrase(lexicon: Lexicon, phrase: Phrase) -> list[str]:
    noun = phrase.noun
    words = [noun.stem + noun.ending] + [lexicon.adjectives[a] + noun.ending for a in phrase.adjectives]
    if phrase.clause is None:
        return words
    # The particle says whether the head noun acts; the verb agrees with the noun that acts.
    clause = phrase.clause
    actor = noun if clause.head_acts else clause.other.noun
    verb = lexicon.verbs[clause.verb] + "n" + actor.ending
    return [*_invented_phrase(lexicon, clause.other), "ki" if clause.head_acts else "ko", verb, *words]


def _english_phrase(phrase: Phrase) -> list[str]:
    words = ["the", *(ADJECTIVES[a] for a in phrase.adjectives), phrase.noun.english]
    if phrase.clause is None:
        return words
    verb, other = [VERBS[phrase.clause.verb]], _english_phrase(phrase.clause.other)
    return [*words, "that", *(verb + other if phrase.clause.head_acts else other + verb)]


def _sentence(words: list[str]) -> str:
    text = " ".join(words)
    return text[0].upper() + text[1:] + "."


def generate(sizes: dict[str, int], seed: int) -> dict[str, list[Pair]]:
    """Return the sentence pairs of each split. No source sentence occurs twice, so the training set has no test
    sentence.

    Args:
        sizes: Number of sentence pairs, keyed by split.
        seed: Random seed.
    """
    grammar = Grammar(random.Random(seed), Lexicon())
    pairs: dict[str, Pair] = {}
    while len(pairs) < sum(sizes.values()):
        pair = grammar.pair()
        pairs.setdefault(pair.source, pair)
    drawn = iter(pairs.values())
    return {split: [next(drawn) for _ in range(size)] for split, size in sizes.items()}


def write(splits: dict[str, list[Pair]], folder: Path, names: tuple[str, str] = ("en", "inv")) -> None:
    """Write files `SPLIT.LANGUAGE` into a folder that appears only when it is complete."""
    with whole_folder(folder) as partial:
        for split, pairs in splits.items():
            for side, name in enumerate(names):
                write_lines(partial / f"{split}.{name}", (pair[side] for pair in pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    parser.add_argument(
        "--seed", type=int, required=True, metavar="N", help="Random seed for generating the sentences."
    )
    text = "Numbers of sentence pairs of the training, validation and test set."
    parser.add_argument("--sizes", required=True, metavar="N,N,N", help=text)
    text = "Names of the source and the target language in file names (default: en inv)."
    parser.add_argument("--names", nargs=2, default=("en", "inv"), metavar="LANG", help=text)
    options = parser.parse_args()
    sizes = dict(zip(("train", "valid", "test"), map(int, options.sizes.split(",")), strict=True))
    write(generate(sizes, options.seed), options.output, tuple(options.names))


if __name__ == "__main__":
    main()

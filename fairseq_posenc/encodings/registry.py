"""List all encodings. A new encoding needs a class in a file of this folder and a line in this list.

This file imports nothing, so that `--help` and `--dry-run` of recipes can read it without torch.
"""

#: The file and class of each encoding, by the name for --pos-enc.
ENCODINGS = {
    "none": "none:NoEncoding",
    "learned": "learned:Learned",
    "sinusoidal": "sinusoidal:Sinusoidal",
    "sentence-restart": "learned:SentenceRestart",
    "shaw": "shaw:Shaw",
    "raffel": "raffel:Raffel",
    "t5": "t5:T5",
    "m1": "huang:M1",
    "m2": "huang:M2",
    "m3": "huang:M3",
    "m4": "m4:M4",
    "m4m": "m4:M4M",
    "xl": "xl:XL",
    "gcdf": "gcdf:GCDF",
    "lfhc": "lfhc:LFHC",
    "deberta": "deberta:Deberta",
    "tupe": "tupe:Tupe",
    "diet-rel": "diet:DietRel",
    "diet-abs": "diet:DietAbs",
    "segments-input": "segments:SegmentsInput",
    "segments": "segments:Segments",
    "linformer": "linformer:Linformer",
    "diet-abs-lin": "linformer:DietAbsLin",
    "rope": "rope:Rope",
    "xpos": "xpos:XPos",
    "alibi": "alibi:Alibi",
    "kerple": "kerple:Kerple",
    "sandwich": "sandwich:Sandwich",
    "fire": "fire:Fire",
    "cope": "cope:Cope",
    "fox": "fox:Fox",
    "dape": "dape:Dape",
    "tisa": "tisa:Tisa",
    "logn": "logn:Logn",
    "pope": "pope:Pope",
    "wall": "wall:Wall",
    "path": "path:Path",
}


def kind_of(member: str) -> str:
    """Return the name in `ENCODINGS` of a member of a composition: `rope` for `rope-2`, the second RoPE.

    A name that is not numbered in this way is returned as it is, even if there is no such encoding.
    """
    kind, _, number = member.rpartition("-")
    return kind if number.isdecimal() and member not in ENCODINGS else member

"""Random quantity texts, most of them valid, for comparing with Go's resource.ParseQuantity."""

from __future__ import annotations

import random

_SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_ODD = ["K", "ki", "i", "mi", "+", "-", ".", " ", "Gi1", "e3Gi", "١", "\n"]


def quantity_text(rng: random.Random) -> str:
    """A text that is a quantity nine times out of ten, of all sizes and formats."""
    kind = rng.random()
    whole = str(rng.choice([0, 1, 5, 8, 1000, 1024, 10**18, 2**63 - 1, 2**63, rng.randrange(10 ** rng.randint(1, 30))]))
    if kind < 0.05:
        whole = ""
    elif kind < 0.1:
        whole = "0" * rng.randint(1, 3) + whole
    fraction = ""
    if rng.random() < 0.3:
        fraction = "." + "".join(rng.choice("0000123456789") for _ in range(rng.randint(0, 12)))
    suffix = rng.choice(_SUFFIXES)
    if rng.random() < 0.25:
        suffix = f"{rng.choice('eE')}{rng.choice(['', '+', '-'])}{rng.randint(0, 24)}"
    text = rng.choice(["", "", "", "-", "+"]) + whole + fraction + suffix
    if rng.random() < 0.08:
        # Not within the digits: an exponent made of them would keep Go busy for ever.
        at = rng.choice([0, len(text)])
        text = text[:at] + rng.choice(_ODD) + text[at:]
    return text

"""What a person reads of a judgement."""

from typing import Final

from tabwarden_adapters.load.verdict import Judgement

VERDICT: Final = {
    Judgement.RIGHT: "The limiter let through exactly what it should, in every window.",
    Judgement.TOO_MANY: "The limiter let through more than its limit within one window.",
    Judgement.TOO_FEW: "The limiter turned calls away although fewer than its limit had been let through.",
    Judgement.UNTRIED: "The limiter was not tried: no call that can be judged was turned away.",
}

"""Frozen known answers of the whole exchange, for this implementation and any other.

`exchange-1.json` is made by `python -m tests.vectors.generate` and never by a test. Bytes are hexadecimal.
What cannot be seeded (the ML-KEM encapsulation, the hedged ML-DSA signature) is recorded as it came.
"""

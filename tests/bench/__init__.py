"""The benchmark: Tabwarden beside its crypto floor, a naive build, bearer tokens and mutual TLS."""

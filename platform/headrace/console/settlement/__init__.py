"""How settlement fares, for operators: what is on its way to the ledger, and who carries it."""

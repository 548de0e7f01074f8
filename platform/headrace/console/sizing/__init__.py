"""The sizing page, and the way from the ledger to a sizing question. The arithmetic is engines.sizing."""

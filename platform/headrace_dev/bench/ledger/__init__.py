"""`bench ledger`: how fast usage reaches the ledger, and what is asked of a ledger of millions of records."""

"""A ledger of millions of records, made by SQL: tenants, keys, prices, two months of use, and what is summed of it."""

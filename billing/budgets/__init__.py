"""Budgets: how much may be spent by whom in a period, held and spent in Redis, always made again from the ledger.

book        all budgets in a process's memory: the meters above a request
counters    the counters in Redis: made ahead, made again when lost, listed
changing    what operators do to a budget: reset, adjust
alerts      who is told when a threshold is passed
"""

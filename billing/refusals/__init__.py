"""How many requests were refused before they were admitted, of whom and why. They are in no record and cost nothing.

counting   in a web process: a number in memory a refusal, one transaction to Redis a second, under a new name each
carrying   in the worker: from Redis to hours in Postgres, each name once
keeping    how long hours stay

What is counted is counted once, whoever dies or asks twice. Not counted: the last second of a web process that is
killed, and what Redis loses before the worker has carried it (5 s). Refusals by a key that is not known are nobody's.
"""

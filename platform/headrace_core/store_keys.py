"""The names of all in Redis. Lua spells the same ones: tenants/meters/tests/test_store_keys.py holds it to these.

A name is part of the contract between processes of two versions that run side by side: it may be added, not changed.
"""

# Holds, settlement and the usage stream
HOLD = "hr:hold:"  # + request id: a hash
HOLDS = "hr:holds"  # ids of live holds by when their lease ends
HOLDS_ASIDE = "hr:holds:aside"
DONE = "hr:done:"  # + request id: the tombstone of a settled request
USAGE = "hr:usage"  # the stream that the ledger is written from
REAPER = "hr:reaper"
LIFE = "hr:life"

# Meters and the queue
METER = "hr:m:"  # + scope:name:measure
ROOM = "hr:m:room:"  # + pool/replica
QUEUE = "hr:q:"  # + pool: + a part
GRANTS = "hr:grants:"  # + a process: the channel on which waiting requests are told
ROOM_LISTS = "hr:rooms:"  # + process:model:target

# Budgets
BUDGET = "hr:b:"  # + budget:first second of the window
BUDGETS_WANTED = "hr:budgets:wanted"
BUDGETS_YOUNG = "hr:budgets:young"
EPOCH = "hr:epoch"  # the run of the server whose counters are trusted
EPOCH_DOUBTED = "hr:epoch:doubted:"  # + run
REBUILD = "hr:rebuild:"  # + a rebuild: + what it read

# Billing
DEAD_LETTERS = "hr:dead_letters"
INVOICES_OVERDUE = "hr:invoices:overdue"
LEDGER_DIFFERENCES = "hr:ledger:differences"
REFUSED_BATCH = "hr:refused:"  # + batch
REFUSED_BATCHES = "hr:refused"

# The fleet
LOAD = "hr:load"
COLLECTOR = "hr:collector"
OUTCOMES = "hr:outcomes:"  # + pool/replica
BREAKS = "hr:breaks"
WORK = "hr:work"
PREFIX_INDEX = "hr:prefix"

# Django and Celery
CACHE = "hr:cache"
CELERY = "hr:celery:"
TASKS_RAN = "hr:ran"

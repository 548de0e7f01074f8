"""Who is next when all replicas are busy: the rule itself, in memory. In service it is tenants/meters/lua/queue.lua."""

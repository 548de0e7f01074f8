"""Meters: whatever is taken and given back, and the holds that say who has taken it.

A meter is a token bucket or a gauge (lua/kinds.lua) or a budget (lua/budgets.lua), of one measure (requests, input
tokens, output tokens, concurrency, cost) in one scope (a tenant, a project, a key). `admit` takes a request's worst
case from all its meters or from none and writes its hold, under a lease; `move` swaps some of its meters for others,
when the request goes on elsewhere; `settle` ends the hold with what was really used and appends the usage event;
`renew` prolongs leases and `rehold` puts back a hold that Redis lost; a lease that ran out is reaped. Each is one
atomic script and may be repeated by request id.
"""

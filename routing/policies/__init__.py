"""The policies by name: each ranks a target's replicas for one request. Adding one is a file here and a line below."""

from routing.policies.base import Ask, Candidate, Policy, Ranked
from routing.policies.least_loaded import LeastLoaded
from routing.policies.power_of_two import PowerOfTwo
from routing.policies.prefix_aware import PrefixAware, Weights
from routing.policies.round_robin import RoundRobin

__all__ = ["DEFAULT", "POLICIES", "Ask", "Candidate", "Policy", "PrefixAware", "Ranked", "Weights"]

DEFAULT = PrefixAware.name
POLICIES: dict[str, Policy] = {
    policy.name: policy for policy in (PrefixAware(), LeastLoaded(), PowerOfTwo(), RoundRobin())
}

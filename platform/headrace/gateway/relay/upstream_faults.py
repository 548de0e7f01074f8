"""What an attempt that failed says of its upstream: to the breaker, and to the collector that ejects replicas."""

from engines.errors import AccountRefused, Busy, Rejected, Stale, TimedOut, UpstreamError
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.breaker import Pass

# How long an upstream that refuses our account is left alone: nobody tops it up within seconds.
_ACCOUNT_SECONDS = 60.0


def blame(gateway: Gateway, request: RequestState, leave: Pass, error: UpstreamError, *, is_begun: bool) -> None:
    """Count a failed attempt against its replica, unless the request may be at fault: whatever form a failure takes,
    one tenant's count for nothing to others while those are answered (routing/own_faults.py).

    is_begun: whether the answer had begun.
    """
    name, key, tenant = request.replica.name, request.replica.key, request.principal.tenant
    if isinstance(error, TimedOut) and not is_begun and request.attempt_at is not None:
        gateway.silences.note(key, tenant, began=request.attempt_at)
    is_hosted = request.replica.upstream.protocol.is_hosted
    pause = _pause(error)
    match error:
        case Stale():
            return  # the connection was old; nothing is known of the engine
        case Rejected():
            leave.answered()
            gateway.silences.answered(key, tenant)
            return
        case Busy() if not pause and not is_hosted:
            leave.answered()  # a full engine is no failing one: its room is free again in an instant
            return
    if not _is_certain(request, error) and gateway.own_faults.is_own(key, tenant, is_begun=is_begun):
        if isinstance(error, Busy) and pause:
            gateway.breakers.pause_tenant(key, tenant, pause)
        return
    if not isinstance(error, TimedOut) or error.which == "connect":
        leave.failed(pause=pause, tenant=None if _is_certain(request, error) or pause else tenant)
    elif not is_begun:
        leave.waited()
        error = TimedOut("first_byte")  # also where the whole request's time was over first
    elif error.which != "total":  # else it wrote all the while, for long
        leave.failed(tenant=tenant)
    gateway.outcomes.failed(name, error)


def _pause(error: UpstreamError) -> float | None:
    """Seconds for which the upstream itself wants to be left alone, or has to be; None: it did not say."""
    match error:
        case AccountRefused():
            return _ACCOUNT_SECONDS
        case Busy(retry_after=float(seconds)) if seconds > 0:
            return seconds
        case _:
            return None


def _is_certain(request: RequestState, error: UpstreamError) -> bool:
    """Whether the upstream failed before it could have had the request, which then cannot be at fault."""
    is_connecting = isinstance(error, TimedOut) and error.which == "connect"
    return is_connecting or request.attempt is None or not request.attempt.is_out

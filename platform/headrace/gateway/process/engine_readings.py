"""What routing sees of the engines: the collector's picture in routing's words."""

from engines.load.picture import Picture
from routing.selection import Reading


class Readings:
    """Readings of replicas, from the picture this process keeps."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def reading(self, replica: str) -> Reading:
        """Unknown is not idle: a stale load has no figures, and a replica nobody watches may be used.
        Its size stands."""
        picture = self._picture
        load, report = picture.of(replica), picture.report(replica)
        return Reading(
            is_usable=picture.usable(replica),
            is_last_resort=picture.last_resort(replica),
            state=report.state if report else "unknown",
            weight=picture.weight(replica),
            kv_tokens=picture.capacity(replica),
            kv_used=load.kv_used if load else None,
            running=load.running if load else None,
            waiting=load.waiting if load else None,
            start=report.started if report else 0,
            lacks=report.lacks if report else (),
        )

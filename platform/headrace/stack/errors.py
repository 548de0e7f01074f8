"""What can go wrong while the stack is brought up.

StackError            the base; its text is for the person at the terminal
    PartFailed        a part did not start, or did not become ready
    NotInstalled      a wheel or a system library that a part needs is missing
"""


class StackError(Exception):
    """The stack cannot run; the text says why and what to do."""


class PartFailed(StackError):
    """A part ended, or was not ready in time."""


class NotInstalled(StackError):
    """Something a part is made of is not on this machine."""

"""Reading what engines send: choices, usage, failures; in the one form that clients take."""

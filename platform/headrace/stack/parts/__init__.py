"""One file a part: its command, its environment, when it is ready and how it stops."""

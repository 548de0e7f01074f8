"""How a request ends: counted, settled, or spooled on disk until Redis is back."""

"""How busy and how well every replica is: collected once for all, read by every process."""

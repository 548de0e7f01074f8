"""The live page of the fleet."""

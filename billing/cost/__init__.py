"""What a million tokens of our own engines cost, beside what they are sold for and what a hosted provider asks."""

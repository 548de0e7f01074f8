"""The page of cost per million tokens."""

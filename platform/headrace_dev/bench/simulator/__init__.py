"""`bench simulator`: whether a simulated replica does what the real SGLang does."""

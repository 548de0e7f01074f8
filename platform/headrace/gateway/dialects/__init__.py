"""How requests are read: one folder for each dialect of the API."""

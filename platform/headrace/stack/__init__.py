"""What `manage.py up` runs: the embedded parts, and the supervisor that starts, watches and stops them.

Nothing else in the product imports this package, apart from the test session, which runs the same Postgres and Valkey.
"""

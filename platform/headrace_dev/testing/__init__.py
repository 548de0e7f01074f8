"""What the test session needs: a Postgres and a Valkey of its own, and the database in them."""

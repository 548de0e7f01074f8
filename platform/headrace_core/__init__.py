"""What every app may import: settings' readers, database roles, secrets, currencies, time zones, who acts."""

"""The console's pages of tenants, projects, keys, people and the audit log."""

"""What many tenants, or one that has grown to its quotas, cost a gateway's process and its other tenants."""

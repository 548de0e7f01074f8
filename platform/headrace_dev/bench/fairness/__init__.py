"""`bench fairness`: what a queue's ordering rule does to tenants that share a busy fleet."""

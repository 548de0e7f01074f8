"""`bench routing`: how well replicas are chosen, by Headrace's policies and by SGLang's own router."""

"""What is asked of an engine, whatever the endpoint's dialect: content, sizes, fields."""

"""The transformer itself, from masks up to the whole stack; every file imports only those above it."""

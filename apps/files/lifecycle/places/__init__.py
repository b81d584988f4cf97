"""The stores, each with a search through all of it."""

"""The inference tier: replicas, the engines that speak to them, and the pool that chooses one. Knows nothing of Django."""

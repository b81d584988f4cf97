"""The inference tier: replicas, the engines that speak to them, the pool that chooses one. Knows no Django."""

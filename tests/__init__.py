"""The tests: real Postgres, Valkey and S3, a scripted engine, no patches of our own code."""

"""Adapters that speak to one kind of model server each, all behind `inference.protocol.Engine`."""

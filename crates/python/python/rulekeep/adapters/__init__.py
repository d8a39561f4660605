"""Adapters to frameworks for agents. Each module imports its framework, which is installed separately."""

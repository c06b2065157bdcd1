"""Claims about what a program communicates, for tests: by counts and bytes, or by golden files."""

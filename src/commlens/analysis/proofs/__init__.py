"""What is said of collectives, held against a runtime that runs them."""

"""What the messages of a log mean: hangs and errors, and the collectives of a module that they can be about."""

"""Passes: what one is, how it is written, how several run one after the other."""

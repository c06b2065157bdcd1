"""The modules of many hosts held against each other before they run together."""

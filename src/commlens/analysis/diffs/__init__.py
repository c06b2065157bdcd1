"""What changed in the communication of a program from one module to another."""

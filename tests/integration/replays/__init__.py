"""One module a guard: ``replay(world)`` makes the incident happen again and asserts what comes."""

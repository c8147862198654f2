"""Benches: ``scripts/bench NAME``. Speed is shown here, never in a timed test."""

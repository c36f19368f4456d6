"""The parts of evidence/peers/run."""

"""The parts of bench/peers/run."""

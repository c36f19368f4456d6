"""What bench/peers/run is made of."""

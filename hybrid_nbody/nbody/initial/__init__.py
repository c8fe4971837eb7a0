"""Bodies in equilibrium, galaxies, binaries and planets, each kind with velocities that fit."""

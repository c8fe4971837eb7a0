"""Forces on bodies, and the exchange of their sources."""

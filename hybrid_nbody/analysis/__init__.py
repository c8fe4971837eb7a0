"""Reading runs: facts, pictures, movies, reports, comparisons and exports."""

"""The page of a report: what its HTML, style and scripts are made of."""

"""Products with relative vectors and other tensor operations. This folder does not import `Positions`."""

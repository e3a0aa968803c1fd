"""Products with relative vectors and other operations on tensors; nothing here knows `Positions`."""

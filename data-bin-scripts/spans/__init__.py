"""Cut questions about texts (SQuAD and similar sets) into windows in which a model looks for the answer."""

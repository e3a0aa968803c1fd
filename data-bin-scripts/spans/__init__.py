"""From questions about texts (SQuAD and its kin) to windows in which a model looks for the answer."""

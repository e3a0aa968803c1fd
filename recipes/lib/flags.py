"""What every command of fairseq gets in a recipe that translates."""

PLUGIN = ("--user-dir", "fairseq_posenc")
# fairseq drops a last batch whose size is no multiple of 8, in training, validation and generation; and
# with a buffer of loaded batches it can die at the very end of a training.
WHOLE = ("--required-batch-size-multiple", "1", "--num-workers", "0", "--data-buffer-size", "0")
QUIET = ("--no-progress-bar", "--log-format", "json")
# fairseq-generate would share the sentences out among all GPUs that it sees, and each part would overwrite the others.
ALONE = ("--distributed-world-size", "1")

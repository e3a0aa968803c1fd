"""Define the flags of fairseq that several recipes share."""

PLUGIN = ("--user-dir", "fairseq_posenc")
# By default fairseq drops a last batch whose size is not a multiple of 8, also in validation and generation.
# With a buffer of loaded batches it can crash at the very end of a training.
WHOLE = ("--required-batch-size-multiple", "1", "--num-workers", "0", "--data-buffer-size", "0")
QUIET = ("--no-progress-bar", "--log-format", "json")
# Without this, fairseq-generate splits the sentences among all visible GPUs, and each process overwrites the output.
ALONE = ("--distributed-world-size", "1")

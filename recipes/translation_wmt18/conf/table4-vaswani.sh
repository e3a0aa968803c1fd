# The base Transformer with sinusoids: row 'Vaswani et al.' of Table 4 of the DIET paper.
# The paper reports BLEU of en-de, de-en, en-cs and cs-en on newstest2018. It does not state the model size,
# the batch size or how checkpoints are averaged. It changes "all the attention layers both in the encoder and decoder",
# which we read as all self-attention layers.
#
# The settings follow tensor2tensor's transformer_base_v3; comments give the names of its hyperparameters. Three things
# differ from it: weights are initialised as in fairseq, padding does not count towards the size of a batch, and
# translation uses the average of several checkpoints.
source "$HERE/conf/base.sh"
direction=en-de,de-en,en-cs,cs-en
train+=(
  --adam-betas '(0.9, 0.997)'     # optimizer_adam_beta1, optimizer_adam_beta2
  --adam-eps 1e-9                 # optimizer_adam_epsilon
  --lr 0.000988                   # learning_rate_constant 2 * 512^-0.5 * 8000^-0.5, the peak of the schedule
  --warmup-updates 8000           # learning_rate_warmup_steps; inverse_sqrt is linear_warmup * rsqrt_decay
  --warmup-init-lr 0
  --attention-dropout 0.1         # attention_dropout; dropout is layer_prepostprocess_dropout
  --activation-dropout 0.1        # relu_dropout
  --encoder-normalize-before      # layer_preprocess_sequence "n", layer_postprocess_sequence "da"
  --decoder-normalize-before
)

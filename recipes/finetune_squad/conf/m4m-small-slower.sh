# The preset divergence at 2.5e-5, the learning rate at which Raffel converges in the M4M paper, section 5.3.
source "$HERE/conf/divergence.sh"
learning_rates=2.5e-5
papers='M4M/RoBERTa-base, learning rate 2.5e-5'
set_flag report like m4m-small-slower

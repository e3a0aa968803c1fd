# The preset smoke with two learning rates, one of which diverges. This tests how divergence is reported.
source "$HERE/conf/smoke.sh"
seeds=1,2
learning_rates=0.003,1e10         # with 1e10, the weights overflow after the warm-up
set_flag train log-interval 5     # the smoke run has 39 updates

# Positions that do not suffice for pretraining, compared with learned absolute positions: M4M paper, section 5.2. The
# report compares the training losses with the paper's: after 500,000 updates without positions and with positions
# within sentences, and for an ordinary RoBERTa-base.
source "$HERE/conf/m4m-small.sh"
pos_enc=none,sentence-restart,learned

# Transformer-XL's encoding in BERT with its biases u and v, and without them: Huang et al. 2020, section 3.4. The paper
# reports that the biases make training unstable, and that without them the accuracy is slightly below Shaw's. It prints
# no scores. A training run that diverges is reported with its update and loss.
source "$HERE/conf/m1-m4.sh"
pos_enc='shaw,xl,xl[biases=none]'

# The third model of the M4M paper's large experiment: roberta-base continues on the English part of C4, with M4M instead of
# absolute positions (Table 6; Table 3 of the submission to ACL). The paper does not state the initial weights and the
# number of updates for C4; this preset has those of the other two models.
source "$HERE/conf/m4m-large.sh"
corpus=c4_en
pos_enc=m4m

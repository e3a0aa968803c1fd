# Raffel and TUPE on SQuAD 1.1 at 3e-5, the learning rate of the other encodings: M4M paper, section 5.3. The paper reports
# that this fine-tuning diverges; the preset m4m-small-slower has the rate at which Raffel converges in the paper.
source "$HERE/conf/m4m-small.sh"
pos_enc=raffel,tupe

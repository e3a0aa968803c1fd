# Length extension to windows of 704 pieces: Huang et al. 2020, section 4.3 and Table 4. The model has k = 256 and was
# pretrained with 512 positions: recipes/pretrain_mlm --preset m1-m4 --pos-enc 'm4[clip=256]'.
source "$HERE/conf/m1-m4.sh"
pos_enc='m4[clip=256]'
length=704                        # beyond the 512 positions of pretraining, so only for encodings that extend
set_flag report like m1-m4-704

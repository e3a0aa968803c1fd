# The base Transformer with relative vectors: row 'Shaw et al.' of Table 4 of the DIET paper, otherwise as table4-vaswani.
source "$HERE/conf/table4-vaswani.sh"
pos_enc='shaw[clip=20,values=true]' # not stated; tensor2tensor's transformer_relative has these values

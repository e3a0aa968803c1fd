# The preset small with all other encodings that work in decoders, which are trained with the first seed only.
source "$HERE/conf/small.sh"
once=raffel,m1,m2,m3,m4,m4m,gcdf,lfhc,deberta,tupe,diet-rel,diet-abs,xpos,kerple,sandwich,cope,alibi+dape,tisa,logn,pope,wall,path

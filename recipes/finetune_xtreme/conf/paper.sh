# The multilingual models of Chen et al. 2021 (DIET), Table 3, with segments at the input. The paper's own models need
# --segments head. Each model needs its own pretraining.
source "$ROOT/recipes/lib/finetuning/protocols/diet-xtreme.sh"  # also for questions; learning rates are chosen on English
tasks=XNLI,XQuAD,MLQA,TyDiQA
corpus=published
pos_enc='learned,shaw,t5,tupe,diet-rel,learned+linformer[slots=256],diet-abs-lin[slots=256]'  # Table 3
pretraining='recipes/pretrain_mlm/run.sh --preset diet-multilingual --corpus wiki100 --languages DIR'
stride=128                        # not stated; this and the next two values are from XTREME's scripts
longest_question=64
longest_answer=30
papers='DIET/BERT-base, 100 languages'
set_flag report like paper
